package main

import (
	"context"
	"errors"
	"fmt"
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
