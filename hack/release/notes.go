package main

import (
	"fmt"
	"os"
	"regexp"
	"strings"
)

// noteFiles cuts the release notes out of the changelog.
func (p *project) noteFiles(string) (map[string][]byte, error) {
	text, err := os.ReadFile("CHANGELOG.md")
	if err != nil {
		return nil, fmt.Errorf("failed to read the changelog: %w", err)
	}
	notes, err := releaseNotes(string(text), p.version)
	return map[string][]byte{"release-notes.md": []byte(notes)}, err
}

// relativeLink matches the destination of a Markdown link to a file of the repository.
var relativeLink = regexp.MustCompile(`\]\(([A-Za-z0-9._-]+(?:/[^)\s]*)?(?:#[^)\s]*)?)\)`)

// releaseNotes returns the section of a release in the changelog. Its links lead to the files of the
// release.
func releaseNotes(changelog, version string) (string, error) {
	heading := regexp.MustCompile(`(?m)^## ` + regexp.QuoteMeta(version) + ` - (\d{4}-\d{2}-\d{2})\n`).FindStringSubmatchIndex(changelog)
	if heading == nil {
		return "", fmt.Errorf("CHANGELOG.md has no section \"## %s - YYYY-MM-DD\": add it with the day of the release", version)
	}
	body, _, _ := strings.Cut(changelog[heading[1]:], "\n## ")
	if strings.TrimSpace(body) == "" {
		return "", fmt.Errorf("the section of CHANGELOG.md for %s is empty: describe what users notice", version)
	}
	body = relativeLink.ReplaceAllString(body, "]("+sourceURL+"/blob/v"+version+"/$1)")
	day := changelog[heading[2]:heading[3]]
	return fmt.Sprintf("# nginx-operator %s\n\nReleased on %s.\n\n%s\n", version, day, strings.TrimSpace(body)), nil
}
