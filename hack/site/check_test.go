//go:build site

package main

import (
	"io/fs"
	"os"
	"strings"
	"testing"
	"testing/fstest"
)

// The check finds each defect of a page. It needs Chromium, and npm or dist/npm, so `make
// site-check` runs it.
func TestCheckFindsDefects(t *testing.T) {
	t.Chdir("../..")
	site := os.DirFS("hack/site/testdata/broken")
	urls, err := urlsOf(site)
	if err != nil || len(urls) != 1 {
		t.Fatalf("%v, %v", urls, err)
	}
	address, stop, err := serve(t.Context(), site, "/docs/")
	must(t, err)
	defer stop()
	rules, err := accessibility.read(t.Context())
	must(t, err)
	b, err := startBrowser(t.Context())
	must(t, err)
	defer b.stop()

	root := address + "/docs/"
	pages := map[string]inspection{}
	for _, w := range windows {
		got, err := b.inspect(root+urls[0], w)
		must(t, err)
		pages[root+urls[0]] = got
		violations, err := b.violations(string(rules["axe.min.js"]))
		must(t, err)
		want := []string{
			"does not render its diagram 1", "has 2 headings of the first level", "does not load the image " + root + "page/missing.png",
			`reports: "an error of a script"`, "reports: Uncaught ReferenceError: missing is not defined",
			"404 (Not Found) " + root + "page/missing.png",
			"violates color-contrast: p",
		}
		if w.width < 900 {
			want = append(want, "pixels wide, at <div> too wide for a phone")
		}
		expectAll(t, append(got.Problems, violations...), want)
	}
	expectAll(t, deadLinks(root, pages), []string{
		root + "page/ links to " + root + "page/missing/, which does not exist", root + "page/#missing, which has no such anchor",
	})
	expectAll(t, missingFiles(pages, func(string) fs.FS { return fstest.MapFS{} }), []string{"missing, which is not in the tree of v0.0.0"})
}

// expectAll reports the expected texts that no problem contains, and the problems without an
// expected text.
func expectAll(t *testing.T, got, want []string) {
	t.Helper()
	for _, text := range want {
		if !strings.Contains(strings.Join(got, "\n"), text) {
			t.Errorf("no problem contains %q:\n%s", text, strings.Join(got, "\n"))
		}
	}
	if len(got) != len(want) {
		t.Errorf("got %d problems, want %d:\n%s", len(got), len(want), strings.Join(got, "\n"))
	}
}
