package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// windows are the windows in which each page is opened: a desktop and a phone, one in light and one
// in dark colors.
var windows = []window{{1280, "light"}, {390, "dark"}}

// window has a width in pixels, and the color scheme that the user prefers.
type window struct {
	width  int64
	colors string
}

// checker collects the problems of a site.
type checker struct {
	browser *browser
	// root is the URL of the site, and home that of its latest release.
	root, home string
	// rules is the script that evaluates accessibility.
	rules    string
	pages    map[string]inspection
	problems []string
}

// check opens each page of dist/site in Chromium, and returns an error if it finds a problem.
func check(ctx context.Context, base string) error {
	started, site := time.Now(), os.DirFS(outputDir)
	urls, err := urlsOf(site)
	if err != nil {
		return err
	}
	latest, _, _ := strings.Cut(urls[0], "/")
	rules, err := accessibility.read(ctx)
	if err != nil {
		return err
	}
	address, stop, err := serve(ctx, site, base)
	if err != nil {
		return err
	}
	defer stop()
	b, err := startBrowser(ctx)
	if err != nil {
		return err
	}
	defer b.stop()

	root := address + base
	c := checker{browser: b, root: root, home: root + latest + "/", rules: string(rules["axe.min.js"]), pages: map[string]inspection{}}
	for _, at := range urls {
		if err := c.open(root + at); err != nil {
			return fmt.Errorf("failed to open /%s: %w", at, err)
		}
	}
	c.problems = append(c.problems, deadLinks(root, c.pages)...)
	c.problems = append(c.problems, missingFiles(c.pages, treesOf(latest))...)
	if err := c.tryControls(); err != nil {
		c.problems = append(c.problems, fmt.Sprintf("the controls of the pages fail: %v", err))
	}
	diagrams := 0
	for _, p := range c.pages {
		diagrams += p.Diagrams
	}
	fmt.Printf("%d pages in %d windows, %d diagrams, %s\n", len(urls), len(windows), diagrams, time.Since(started).Round(time.Second))
	if diagrams == 0 {
		c.problems = append(c.problems, "no page has a diagram")
	}
	if len(c.problems) > 0 {
		return fmt.Errorf("%d problems:\n%s", len(c.problems), strings.ReplaceAll(strings.Join(c.problems, "\n"), root, "/"))
	}
	return nil
}

// open opens a page in each window, and records its problems. It evaluates the accessibility of the
// latest release.
func (c *checker) open(at string) error {
	for _, w := range windows {
		got, err := c.browser.inspect(at, w)
		if err != nil {
			return err
		}
		c.pages[at] = got
		found := got.Problems
		if strings.HasPrefix(at, c.home) {
			violations, err := c.browser.violations(c.rules)
			if err != nil {
				return fmt.Errorf("failed to evaluate the accessibility: %w", err)
			}
			found = append(found, violations...)
		}
		for _, problem := range found {
			c.problems = append(c.problems, fmt.Sprintf("%s at %d pixels %s", at, w.width, problem))
		}
	}
	return nil
}

// urlsOf returns the URLs of all pages, relative to the root of the site, the latest release first.
// The redirection at the root is no page.
func urlsOf(site fs.FS) ([]string, error) {
	var out []string
	err := fs.WalkDir(site, ".", func(name string, _ fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case path.Base(name) == "index.html" && name != "index.html":
			out = append(out, strings.TrimSuffix(name, "index.html"))
		case path.Base(name) == "404.html" && name != "404.html":
			out = append(out, name)
		}
		return nil
	})
	if err == nil && len(out) == 0 {
		err = errors.New("there is no page; run make site")
	}
	if err != nil {
		return nil, fmt.Errorf("failed to list the pages of %s: %w", outputDir, err)
	}
	releaseOf := func(address string) string {
		release, _, _ := strings.Cut(address, "/")
		return release
	}
	slices.SortStableFunc(out, func(a, b string) int { return compareVersions(releaseOf(b), releaseOf(a)) })
	return out, nil
}

// treesOf returns a function that maps a release to the directory of its files.
func treesOf(latest string) func(release string) fs.FS {
	return func(release string) fs.FS {
		if release == latest {
			return os.DirFS(".")
		}
		return os.DirFS(filepath.Join("dist/releases", release))
	}
}

// serve serves the site on a port of the loopback interface, below its base path.
func serve(ctx context.Context, site fs.FS, base string) (address string, stop func(), err error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, fmt.Errorf("failed to listen: %w", err)
	}
	server := &http.Server{
		Handler: http.StripPrefix(strings.TrimSuffix(base, "/"), http.FileServerFS(site)), ReadHeaderTimeout: 10 * time.Second,
	}
	go func() { _ = server.Serve(listener) }()
	return "http://" + listener.Addr().String(), func() { _ = server.Close() }, nil
}
