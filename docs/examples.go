package docs

import (
	"fmt"
	"io/fs"
	"regexp"
	"strings"
)

// Example is a manifest on a page.
type Example struct {
	// Section is the heading of the second level that it stands under, "" before the first.
	Section string
	// Documents are its YAML documents, at least one of which is an NginxOperator.
	Documents []string
}

var (
	// A fence is matched as a whole, so that a comment in it is no heading.
	headingOrFence = regexp.MustCompile("(?ms)^## ([^\n]+)$|^```([a-z]*)\n(.*?)^```$")
	separator      = regexp.MustCompile(`(?m)^---\n`)
	anOperand      = regexp.MustCompile(`(?m)^kind: NginxOperator$`)
)

// Fields returns the reference of the fields as one page. The directory is docs/guide, with
// fields.md and fields/*.md.
func Fields(guide fs.FS) (string, error) {
	names, err := fs.Glob(guide, "fields/*.md")
	if err != nil {
		return "", fmt.Errorf("failed to list the pages on fields: %w", err)
	}

	var out strings.Builder
	for _, name := range append([]string{"fields.md"}, names...) {
		text, err := fs.ReadFile(guide, name)
		if err != nil {
			return "", fmt.Errorf("failed to read a page on fields: %w", err)
		}
		out.Write(text)
	}
	return out.String(), nil
}

// Examples returns the manifests of a page that declare an NginxOperator, in their order.
func Examples(page string) []Example {
	var out []Example
	section := ""
	for _, found := range headingOrFence.FindAllStringSubmatch(page, -1) {
		switch {
		case found[1] != "":
			section = found[1]
		case found[2] == "yaml" && anOperand.MatchString(found[3]):
			out = append(out, Example{Section: section, Documents: separator.Split(found[3], -1)})
		}
	}
	return out
}
