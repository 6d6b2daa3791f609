package main

import (
	"path"
	"strings"
)

// entry is a page in the navigation.
type entry struct {
	Title string `json:"title"`
	Path  string `json:"path"`
	// Children are the pages of the directory of an index.
	Children []entry `json:"children,omitempty"`
}

// group is a part of the navigation with a heading.
type group struct {
	Title string  `json:"title"`
	Pages []entry `json:"pages"`
}

// minIndex is the number of pages in tables from which on the user guide counts as an index.
const minIndex = 5

// navigation returns all pages except the home page, in the order and with the headings of the
// user guide. Pages in the directory of an index are its children. The other pages that the user
// guide does not list follow at the end. It also returns whether the user guide is an index: that
// of the first releases is a text, and then all pages are in one group.
func navigation(pages []page) ([]group, bool) {
	remaining := map[string]page{}
	for _, p := range pages {
		remaining[p.source] = p
	}
	guide := remaining[index].text
	delete(remaining, index)

	groups := listed(guide, remaining, false)
	isIndex := count(groups) >= minIndex
	groups = nil
	if isIndex {
		groups = listed(guide, remaining, true)
		for _, g := range groups {
			for _, e := range g.Pages {
				delete(remaining, sourceOf(pages, e.Path))
			}
		}
	}
	rest := group{Title: "More"}
	if !isIndex {
		rest.Title = "Pages"
	}
	for _, p := range pages {
		if _, found := remaining[p.source]; found && !hasIndex(p, pages) {
			rest.Pages = append(rest.Pages, entry{Title: p.title, Path: p.path})
		}
	}
	if len(rest.Pages) > 0 {
		groups = append(groups, rest)
	}
	for _, g := range groups {
		for i := range g.Pages {
			g.Pages[i].Children = childrenOf(g.Pages[i], pages, remaining)
		}
	}
	return groups, isIndex
}

// listed returns the pages that the user guide links to, by heading. A page in the first column of
// a table has the text of the link as its title. Pages in sentences are optional, and keep their
// own title.
func listed(guide string, pages map[string]page, sentences bool) []group {
	current, code, seen := group{Title: "Guide"}, false, map[string]bool{}
	var out []group
	for line := range strings.Lines(guide) {
		if strings.HasPrefix(line, "```") {
			code = !code
		}
		if title, found := strings.CutPrefix(line, "## "); found && !code {
			out, current = append(out, current), group{Title: plain(title)}
		}
		row := strings.HasPrefix(line, "| [")
		if code || !row && !sentences {
			continue
		}
		for _, match := range linkPattern.FindAllStringSubmatch(line, -1) {
			p, found := pages[path.Clean(match[2])]
			if !found || seen[p.source] {
				continue
			}
			seen[p.source] = true
			title := p.title
			if row {
				title = plain(match[1])
			} else if title == current.Title {
				title = "Overview"
			}
			current.Pages = append(current.Pages, entry{Title: title, Path: p.path})
			if row {
				break
			}
		}
	}
	var filled []group
	for _, g := range append(out, current) {
		if len(g.Pages) > 0 {
			filled = append(filled, g)
		}
	}
	return filled
}

func count(groups []group) int {
	out := 0
	for _, g := range groups {
		out += len(g.Pages)
	}
	return out
}

func sourceOf(pages []page, path string) string {
	for _, p := range pages {
		if p.path == path {
			return p.source
		}
	}
	return ""
}

// hasIndex reports whether the path of another page is the directory of this one.
func hasIndex(p page, pages []page) bool {
	parent := path.Dir(strings.TrimSuffix(p.path, "/")) + "/"
	return sourceOf(pages, parent) != ""
}

// childrenOf returns the remaining pages in the directory of an entry.
func childrenOf(e entry, pages []page, remaining map[string]page) []entry {
	var out []entry
	for _, p := range pages {
		if _, found := remaining[p.source]; found && p.path != e.Path && path.Dir(strings.TrimSuffix(p.path, "/"))+"/" == e.Path {
			out = append(out, entry{Title: p.title, Path: p.path})
		}
	}
	return out
}

// inOrder returns the pages of the navigation in the order in which they are read, the home page
// first.
func inOrder(groups []group) []entry {
	out := []entry{{Title: "User guide"}}
	for _, g := range groups {
		for _, e := range g.Pages {
			out = append(append(out, e), e.Children...)
		}
	}
	return out
}
