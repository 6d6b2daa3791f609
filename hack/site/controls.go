package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// tryControls uses the link that skips the navigation, the search, and the list of versions, as a
// user does, and records their problems.
func (c *checker) tryControls() error {
	b := c.browser
	b.takeErrors()
	expect := func(ok bool, format string, args ...any) {
		if !ok {
			c.problems = append(c.problems, fmt.Sprintf(format, args...))
		}
	}

	if err := errors.Join(b.set(windows[0]), b.do(chromedp.Navigate(c.home+"install/"), chromedp.KeyEvent(kb.Tab))); err != nil {
		return err
	}
	first, err := value(b, chromedp.Evaluate[string](`document.activeElement.getAttribute("href") ?? ""`))
	if err != nil {
		return err
	}
	expect(first == "#content", "the first link of a page is %q, not the one that skips to the content", first)

	found, err := b.search()
	if err != nil {
		return fmt.Errorf("the search: %w", err)
	}
	expect(found == c.home+"guide/fields/rollout/#drainseconds", "the search for drainSeconds leads to %s", found)

	const second = `.versions li:nth-child(2) a`
	err = b.do(chromedp.Click(`.versions summary`), chromedp.WaitVisible(second))
	if err := errors.Join(err, b.follow(chromedp.Click(second)), b.do(chromedp.WaitVisible(`.outdated`))); err != nil {
		return fmt.Errorf("the list of versions: %w", err)
	}
	older, err := value(b, chromedp.Location())
	if err != nil {
		return err
	}
	version, err := value(b, chromedp.TextContent(`.versions summary`))
	if err != nil {
		return err
	}
	want := c.root + strings.TrimSpace(version) + "/" + strings.TrimPrefix(found, c.home)
	expect(want == older, "the version %s of %s is %s", version, found, older)
	c.problems = append(c.problems, b.takeErrors()...)
	return nil
}

// search searches for words that no page has, then for a field, and returns the URL of the first
// result.
func (b *browser) search() (string, error) {
	const input = `dialog.search input`
	replace := chromedp.Evaluate[chromedp.Void](`document.querySelector("dialog.search input").select()`)
	err := b.do(chromedp.KeyEvent("/"), chromedp.WaitVisible(input), replace, chromedp.SendKeys(input, "xyzzy qwerty"),
		until(`document.querySelector(".hint").textContent.startsWith("No section")`), replace, chromedp.SendKeys(input, "drainSeconds"),
		until(`document.querySelector("#results a strong")?.textContent === "drainSeconds"`))
	if err := errors.Join(err, b.follow(chromedp.KeyEvent(kb.Enter))); err != nil {
		return "", err
	}
	return value(b, chromedp.Location())
}

// follow runs an action that opens another page, and waits for that page.
func (b *browser) follow(action chromedp.Action[chromedp.Void]) error {
	ctx, cancel := context.WithTimeout(b.ctx, pageTimeout)
	defer cancel()
	_, err := chromedp.RunResponse(ctx, action)
	return err
}

// until waits until an expression is true.
func until(expression string) chromedp.Action[chromedp.Void] {
	return chromedp.Poll[chromedp.Void](expression, chromedp.WithPollingTimeout(pageTimeout/2))
}

// screenshotPages are typical pages: the index, tables, a diagram, code, and a decision.
var screenshotPages = []string{"", "reference/api/", "how-it-works/", "journeys/static-site-https/", "adr/0047-watch-namespaces/"}

// takeScreenshots writes pictures of typical pages, of the search, and of the navigation of a phone.
func (c *checker) takeScreenshots(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("failed to create the directory of the screenshots: %w", err)
	}
	for _, at := range screenshotPages {
		for _, w := range append(slices.Clone(windows), window{windows[0].width, "dark"}) {
			if err := c.takeScreenshot(dir, at, "", w); err != nil {
				return fmt.Errorf("failed to take a screenshot of %s: %w", at, err)
			}
		}
	}
	const find = `dialog.search input`
	return errors.Join(
		c.takeScreenshot(dir, "install/", "navigation", windows[1], chromedp.Click(`.top .menu`), chromedp.WaitVisible(`nav.side a`)),
		c.takeScreenshot(dir, "install/", "search", windows[0],
			chromedp.Click(`button.search`), chromedp.WaitVisible(find), chromedp.SendKeys(find, "rollback"), chromedp.WaitVisible(`#results a`)),
		c.takeScreenshot(dir, "install/", "versions", windows[0], chromedp.Click(`.versions summary`), chromedp.WaitVisible(`.versions li a`)),
		c.takeScreenshot(dir, "how-it-works/", "enlarged", windows[1], chromedp.Click(`.zoom`), chromedp.WaitVisible(`dialog.diagram svg`)),
	)
}

// takeScreenshot writes a picture of a page after actions.
func (c *checker) takeScreenshot(dir, at, suffix string, w window, actions ...chromedp.Action[chromedp.Void]) error {
	if _, err := c.browser.inspect(c.home+at, w); err != nil {
		return err
	}
	if err := c.browser.do(actions...); err != nil {
		return err
	}
	picture, err := value(c.browser, chromedp.CaptureScreenshot())
	if err != nil {
		return err
	}
	name := cmp.Or(strings.Trim(strings.ReplaceAll(at+suffix, "/", "-"), "-"), "home")
	file := filepath.Join(dir, fmt.Sprintf("%s-%d-%s.png", name, w.width, w.colors))
	if err := os.WriteFile(file, picture, 0o644); err != nil {
		return fmt.Errorf("failed to write a screenshot: %w", err)
	}
	return nil
}
