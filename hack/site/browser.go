package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// pageTimeout bounds the time for a page. A busy machine takes minutes to draw a large diagram.
const pageTimeout = 5 * time.Minute

//go:embed inspect.js
var inspectScript string

// browser is a tab of Chromium.
type browser struct {
	ctx  context.Context //nolint:containedctx // chromedp keeps the tab in a context
	stop func()

	mutex  sync.Mutex
	errors []string
}

// startBrowser starts Chromium without a window. It resolves no host names, so pages load nothing
// from other hosts.
func startBrowser(ctx context.Context) (*browser, error) {
	options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]),
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"), chromedp.WSURLReadTimeout(pageTimeout))
	if os.Getuid() == 0 {
		options = append(options, chromedp.NoSandbox)
	}
	ctx, stopAllocator := chromedp.NewExecAllocator(ctx, options...)
	ctx, stopTab := chromedp.NewContext(ctx)
	b := &browser{ctx: ctx, stop: func() { stopTab(); stopAllocator() }}
	if err := chromedp.Listen(ctx, b.listen); err != nil {
		b.stop()
		return nil, fmt.Errorf("failed to start Chromium; install Debian's package chromium: %w", err)
	}
	return b, nil
}

// listen records errors of scripts, and requests that fail.
func (b *browser) listen(event any) {
	text := ""
	switch event := event.(type) {
	case *runtime.EventExceptionThrown:
		text = event.ExceptionDetails.Text
		if exception := event.ExceptionDetails.Exception; exception != nil {
			text += " " + exception.Description
		}
	case *runtime.EventConsoleAPICalled:
		if event.Type == runtime.ConsoleAPICalledTypeError {
			for _, argument := range event.Args {
				text += string(argument.Value) + argument.Description + " "
			}
		}
	case *log.EventEntryAdded:
		if event.Entry.Level == log.EntryLevelError {
			text = event.Entry.Text + " " + event.Entry.URL
		}
	}
	if text != "" {
		b.mutex.Lock()
		defer b.mutex.Unlock()
		b.errors = append(b.errors, "reports: "+strings.TrimSpace(text))
	}
}

// takeErrors returns the recorded errors, and forgets them.
func (b *browser) takeErrors() []string {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	out := b.errors
	b.errors = nil
	return out
}

// do runs actions within the time for a page.
func (b *browser) do(actions ...chromedp.Action[chromedp.Void]) error {
	ctx, cancel := context.WithTimeout(b.ctx, pageTimeout)
	defer cancel()
	return chromedp.Do(ctx, actions...)
}

// value runs an action with a value within the time for a page.
func value[T any](b *browser, action chromedp.Action[T]) (T, error) {
	ctx, cancel := context.WithTimeout(b.ctx, pageTimeout)
	defer cancel()
	return chromedp.Run(ctx, action)
}

// set sets the size and the colors of the window. A narrow one is that of a phone.
func (b *browser) set(w window) error {
	const height, phone = 900, 600
	var options []chromedp.EmulateViewportOption
	if w.width < phone {
		options = append(options, chromedp.EmulateMobile, chromedp.EmulateTouch)
	}
	features := []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: w.colors}}
	_, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: features})
	return errors.Join(err, b.do(chromedp.EmulateViewport(w.width, height, options...)))
}

// inspect opens a page in a window, waits until it is rendered, and returns the findings.
func (b *browser) inspect(address string, w window) (inspection, error) {
	b.takeErrors()
	// Without the last page, a change of the colors draws no diagrams again.
	if err := errors.Join(b.do(chromedp.Navigate("about:blank")), b.set(w), b.do(chromedp.Navigate(address))); err != nil {
		return inspection{}, err
	}
	out, err := value(b, chromedp.Evaluate[inspection](inspectScript, chromedp.EvalAwaitPromise))
	out.Problems = append(out.Problems, b.takeErrors()...)
	return out, err
}

// violations returns violations of accessibility rules in the open page. engine is the script of
// axe-core. Diagrams are images for it.
func (b *browser) violations(engine string) ([]string, error) {
	const evaluate = `axe.run({exclude: ["pre.mermaid"]},
		{runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"], resultTypes: ["violations"]}).then(result =>
		result.violations.flatMap(rule => rule.nodes.map(node => rule.id + ": " + node.target.join(" ") + ": " + node.failureSummary)))`
	if err := b.do(chromedp.Evaluate[chromedp.Void](engine)); err != nil {
		return nil, err
	}
	found, err := value(b, chromedp.Evaluate[[]string](evaluate, chromedp.EvalAwaitPromise))
	for i, violation := range found {
		found[i] = "violates " + strings.Join(strings.Fields(violation), " ")
	}
	return found, err
}
