package main

import (
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"path"
	"slices"
	"strings"
)

// inspection has the findings of the browser in a page.
type inspection struct {
	Problems []string `json:"problems"`
	Diagrams int      `json:"diagrams"`
	// IDs are the anchors of the page.
	IDs []string `json:"ids"`
	// Links are absolute URLs.
	Links []string `json:"links"`
}

// deadLinks returns the links between pages whose page or anchor does not exist. root is the URL of
// the site.
func deadLinks(root string, pages map[string]inspection) []string {
	anchors := map[string]map[string]bool{}
	for address, p := range pages {
		anchors[address] = map[string]bool{}
		for _, id := range p.IDs {
			anchors[address][id] = true
		}
	}
	var out []string
	for _, address := range slices.Sorted(maps.Keys(pages)) {
		for _, link := range pages[address].Links {
			if !strings.HasPrefix(link, root) {
				continue
			}
			target, fragment, _ := strings.Cut(link, "#")
			id, err := url.PathUnescape(fragment)
			switch ids, found := anchors[target]; {
			case !found:
				out = append(out, fmt.Sprintf("%s links to %s, which does not exist", address, target))
			case err != nil || id != "" && !ids[id]:
				out = append(out, fmt.Sprintf("%s links to %s, which has no such anchor", address, link))
			}
		}
	}
	return out
}

// missingFiles returns the links to files in the repository that do not exist in the tree of their
// release.
func missingFiles(pages map[string]inspection, treeOf func(release string) fs.FS) []string {
	var out []string
	for _, address := range slices.Sorted(maps.Keys(pages)) {
		for _, link := range pages[address].Links {
			rest, found := strings.CutPrefix(link, repository+"/blob/")
			if !found {
				continue
			}
			rest, _, _ = strings.Cut(rest, "#")
			release, escaped, _ := strings.Cut(rest, "/")
			name, err := url.PathUnescape(escaped)
			if err == nil {
				_, err = fs.Stat(treeOf(release), path.Clean(name))
			}
			if err != nil {
				out = append(out, fmt.Sprintf("%s links to %s, which is not in the tree of %s", address, name, release))
			}
		}
	}
	return out
}
