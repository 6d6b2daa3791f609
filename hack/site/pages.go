package main

import (
	"fmt"
	"io/fs"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
)

// index is the page that lists all others. It becomes the home page.
const index = "user-guide.md"

// page is a Markdown file of docs/, or of the root of the repository.
type page struct {
	// source is its path relative to docs/.
	source string
	// path is the path of its URL, relative to the home page, which has an empty one.
	path  string
	title string
	text  string
}

// readDocs returns the pages and the names of the images of docs/, both ordered by name.
func readDocs(docs fs.FS) (out []page, images []string, err error) {
	err = fs.WalkDir(docs, ".", func(name string, _ fs.DirEntry, err error) error {
		if slices.Contains([]string{".svg", ".png", ".jpg", ".webp"}, path.Ext(name)) {
			images = append(images, name)
		}
		if err != nil || path.Ext(name) != ".md" {
			return err
		}
		text, err := fs.ReadFile(docs, name)
		if err != nil {
			return err
		}
		title := titleOf(string(text))
		if title == "" {
			return fmt.Errorf("%s does not start with a heading of the first level", name)
		}
		out = append(out, page{source: name, path: pathOf(name), title: title, text: string(text)})
		return nil
	})
	if err != nil {
		return nil, nil, fmt.Errorf("failed to read the pages: %w", err)
	}
	if !slices.ContainsFunc(out, func(p page) bool { return p.source == index }) {
		return nil, nil, fmt.Errorf("docs/ has no %s", index)
	}
	return out, images, nil
}

// listedInRoot matches a row of the user guide with a page of the root of the repository, for
// example CHANGELOG.md. The user guides of the first releases have none.
var listedInRoot = regexp.MustCompile(`(?m)^\| \[[^]]+\]\((\.\./([A-Z]+\.md))\) \|`)

// readRoot returns the pages of the root of the repository that tables of the user guide list.
func readRoot(root fs.FS, pages []page) ([]page, error) {
	var out []page
	for _, guide := range pages {
		if guide.source != index {
			continue
		}
		for _, row := range listedInRoot.FindAllStringSubmatch(guide.text, -1) {
			text, err := fs.ReadFile(root, row[2])
			if err != nil {
				return nil, fmt.Errorf("failed to read a page that %s lists: %w", index, err)
			}
			title := titleOf(string(text))
			if title == "" {
				return nil, fmt.Errorf("%s does not start with a heading of the first level", row[2])
			}
			out = append(out, page{source: row[1], path: pathOf(strings.ToLower(row[2])), title: title, text: string(text)})
		}
	}
	return out, nil
}

var headingPattern = regexp.MustCompile(`(?m)\A\s*# (.+)$`)

// titleOf returns the heading at the start of a page without markup, or "".
func titleOf(text string) string {
	heading := headingPattern.FindStringSubmatch(text)
	if heading == nil {
		return ""
	}
	return plain(heading[1])
}

// withoutTitle returns a page without the heading at its start.
func withoutTitle(text string) string {
	return headingPattern.ReplaceAllString(text, "")
}

var (
	linkPattern   = regexp.MustCompile(`\[((?:[^][]|\[[^][]*\])*)\]\(([^()\s]+)\)`)
	markupPattern = regexp.MustCompile("[`*]|<[^>]*>")
)

// plain returns a line of Markdown without links, HTML, and emphasis.
func plain(line string) string {
	return strings.TrimSpace(markupPattern.ReplaceAllString(linkPattern.ReplaceAllString(line, "$1"), ""))
}

// pathOf returns the path of the URL of a page. A README is the page of its directory.
func pathOf(source string) string {
	if source == index {
		return ""
	}
	name := strings.TrimSuffix(source, ".md")
	if path.Base(name) == "README" {
		name = path.Dir(name)
	}
	return name + "/"
}

// links maps each destination of a link of a page to the URL that it has on the site: that of a
// page or an image, or that of the file in the repository at the release. It omits destinations
// that stay as they are. base is the path of the site.
func (r release) links(p page, base string) map[string]string {
	out := map[string]string{}
	add := func(destination string) {
		if resolved := r.resolve(p.source, destination, base); resolved != destination {
			out[destination] = resolved
		}
	}
	for _, match := range linkPattern.FindAllStringSubmatch(p.text, -1) {
		add(match[2])
	}
	for _, match := range imagePattern.FindAllStringSubmatch(p.text, -1) {
		add(match[1])
	}
	return out
}

// imagePattern matches an image, which can be the text of a link.
var imagePattern = regexp.MustCompile(`!\[[^][]*\]\(([^()\s]+)\)`)

// resolve returns the URL of one destination.
func (r release) resolve(source, destination, base string) string {
	parsed, err := url.Parse(destination)
	if err != nil || parsed.Scheme != "" || parsed.Host != "" || parsed.Path == "" {
		return destination
	}
	fragment := ""
	if parsed.Fragment != "" {
		fragment = "#" + parsed.EscapedFragment()
	}
	file, root := path.Join("docs", path.Dir(source), parsed.Path), base+r.version+"/"
	for _, candidate := range r.pages {
		if name := path.Join("docs", candidate.source); name == file || name == file+"/README.md" {
			return root + candidate.path + fragment
		}
	}
	if image := strings.TrimPrefix(file, "docs/"); slices.Contains(r.images, image) {
		return root + (&url.URL{Path: image}).EscapedPath()
	}
	return repository + "/blob/" + r.version + "/" + (&url.URL{Path: file}).EscapedPath() + fragment
}
