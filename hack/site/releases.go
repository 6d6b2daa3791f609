package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// release is a release with its documentation.
type release struct {
	// version is its tag, as in v0.7.0.
	version string
	// tree is the directory of its files.
	tree  string
	pages []page
	// images are names in docs/.
	images []string
}

// corrected replaces texts of pages of older releases. Mermaid reads the semicolon of a message as
// its end, and does not draw the diagram.
var corrected = strings.NewReplacer("; storedVersions: v1alpha1, v1alpha2\n", ", storedVersions: v1alpha1, v1alpha2\n")

// isIndex reports whether the user guide of the release is an index.
func (r release) isIndex() bool {
	_, index := navigation(r.pages)
	return index
}

// readReleases returns all releases in the catalog, the latest first. The last commit of an older
// release has its pages; for the release that VERSION names, these are the pages of this tree.
func readReleases(ctx context.Context) ([]release, error) {
	text, err := os.ReadFile("VERSION")
	if err != nil {
		return nil, fmt.Errorf("failed to read the version: %w", err)
	}
	current := "v" + strings.TrimSpace(string(text))
	bundles, err := filepath.Glob("catalog/nginx-operator/bundles/v*.yaml")
	if err != nil {
		return nil, fmt.Errorf("failed to list the releases: %w", err)
	}
	versions := map[string]bool{current: true}
	for _, bundle := range bundles {
		versions[strings.TrimSuffix(filepath.Base(bundle), ".yaml")] = true
	}
	var out []release
	for _, version := range slices.SortedFunc(maps.Keys(versions), func(a, b string) int { return compareVersions(b, a) }) {
		r := release{version: version, tree: "."}
		if version != current {
			if r.tree, err = treeOf(ctx, version); err != nil {
				return nil, err
			}
		}
		if r.pages, r.images, err = readDocs(os.DirFS(filepath.Join(r.tree, "docs"))); err != nil {
			return nil, fmt.Errorf("%s: %w", version, err)
		}
		root, err := readRoot(os.DirFS(r.tree), r.pages)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", version, err)
		}
		r.pages = append(r.pages, root...)
		if version != current {
			for i := range r.pages {
				r.pages[i].text = corrected.Replace(r.pages[i].text)
			}
		}
		out = append(out, r)
	}
	if out[0].version != current {
		return nil, fmt.Errorf("VERSION says %s, and the catalog has %s", current, out[0].version)
	}
	return out, nil
}

// treeOf checks out an older release, and returns its directory.
func treeOf(ctx context.Context, version string) (string, error) {
	cmd := exec.CommandContext(ctx, "bin/release", "tree", strings.TrimPrefix(version, "v"))
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("failed to check out %s: %w", version, err)
	}
	return strings.TrimSpace(string(out)), nil
}

// compareVersions compares two versions of the form v1.2.3.
func compareVersions(a, b string) int {
	return slices.Compare(numbers(a), numbers(b))
}

func numbers(version string) []int {
	var out []int
	for part := range strings.SplitSeq(strings.TrimPrefix(version, "v"), ".") {
		number, _ := strconv.Atoi(part)
		out = append(out, number)
	}
	return out
}

// content is the input of Hugo for a release.
type content struct {
	// files are the pages with front matter, by name.
	files map[string]string
	// pages has the data of each page, by source.
	pages      map[string]pageData
	navigation []group
}

// pageData is the data of a page for the layouts.
type pageData struct {
	Path string `json:"path"`
	// Group is the heading of the page in the navigation.
	Group    string `json:"group"`
	Parent   *entry `json:"parent,omitempty"`
	Previous *entry `json:"previous,omitempty"`
	Next     *entry `json:"next,omitempty"`
	// Links maps destinations of links to URLs.
	Links map[string]string `json:"links"`
	// Versions are the same page in all releases, the latest first.
	Versions []pageVersion `json:"versions"`
}

// pageVersion is a page in a release, or the home page of the release if it does not have the page.
type pageVersion struct {
	Version string `json:"version"`
	URL     string `json:"url"`
	Missing bool   `json:"missing,omitempty"`
}

// contentOf returns the content of a release. base is the path of the site.
func contentOf(r release, releases []release, base string) content {
	groups, isIndex := navigation(r.pages)
	out := content{files: map[string]string{}, pages: map[string]pageData{}, navigation: groups}
	order := inOrder(groups)
	for _, p := range r.pages {
		text := p.text
		if p.source == index && isIndex {
			text = withoutTitle(text)
		}
		out.files[fileOf(p)] = frontMatter(p) + text
		data := pageData{Path: p.path, Links: r.links(p, base), Versions: versionsOf(p, releases, base)}
		data.Group, data.Parent = placeOf(p, groups)
		at := slices.IndexFunc(order, func(e entry) bool { return e.Path == p.path })
		if at > 0 {
			data.Previous = &entry{Title: order[at-1].Title, Path: order[at-1].Path}
		}
		if at >= 0 && at < len(order)-1 {
			data.Next = &entry{Title: order[at+1].Title, Path: order[at+1].Path}
		}
		out.pages[p.source] = data
	}
	return out
}

// fileOf returns the name of the content file of a page. All are in one directory: Hugo gives
// names of directories a meaning.
func fileOf(p page) string {
	if p.path == "" {
		return "_index.md"
	}
	return strings.ReplaceAll(strings.Trim(p.path, "/"), "/", "--") + ".md"
}

// frontMatter returns the front matter of a page: its title, its URL, and its source.
func frontMatter(p page) string {
	matter := map[string]any{"title": p.title, "params": map[string]string{"source": p.source}}
	if p.path != "" {
		matter["url"] = p.path
	}
	text, err := json.MarshalIndent(matter, "", "  ")
	if err != nil {
		panic(errors.Join(errors.New("failed to marshal strings"), err))
	}
	return string(text) + "\n\n"
}

// placeOf returns the group of a page, and the index that it belongs to, if any.
func placeOf(p page, groups []group) (string, *entry) {
	for _, g := range groups {
		for _, e := range g.Pages {
			if e.Path == p.path {
				return g.Title, nil
			}
			for _, child := range e.Children {
				if child.Path == p.path {
					return g.Title, &entry{Title: e.Title, Path: e.Path}
				}
			}
		}
	}
	return "", nil
}

// versionsOf returns the page with the same path in each release.
func versionsOf(p page, releases []release, base string) []pageVersion {
	var out []pageVersion
	for _, r := range releases {
		v := pageVersion{Version: r.version, URL: base + r.version + "/", Missing: true}
		for _, other := range r.pages {
			if other.path == p.path {
				v.URL, v.Missing = v.URL+p.path, false
			}
		}
		out = append(out, v)
	}
	return out
}
