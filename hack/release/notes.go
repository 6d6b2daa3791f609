package main

import (
	"errors"
	"fmt"
	"io/fs"
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
	if err != nil {
		return nil, err
	}
	statement, err := signatureStatement(p.version)
	return map[string][]byte{"release-notes.md": []byte(notes + statement)}, err
}

// publicKey is the file of the key that verifies the signatures of releases. If the repository has
// it, the signing job of the release workflow signs SHA256SUMS.
const publicKey = "cosign.pub"

// signatureStatement says whether a release is signed.
func signatureStatement(version string) (string, error) {
	tree := sourceURL + "/blob/v" + version + "/"
	verify := "[Verify a download](" + tree + "docs/guide/operations/downloads.md).\n"
	switch _, err := os.Stat(publicKey); {
	case err == nil:
		return "\n**This release is signed**: `" + sumsFile + ".sig` is the signature of `" + sumsFile + "` with [the key of the project](" +
			tree + publicKey + "). " + verify, nil
	case errors.Is(err, fs.ErrNotExist):
		return "\n**This release is not signed.** `" + sumsFile + "` has the checksums of its files. " + verify, nil
	default:
		return "", fmt.Errorf("failed to look for the public key: %w", err)
	}
}

// relativeLink matches the destination of a Markdown link to a file of the repository.
var relativeLink = regexp.MustCompile(`\]\(([A-Za-z0-9._-]+(?:/[^)\s]*)?(?:#[^)\s]*)?)\)`)

// releaseNotes returns the section of a release in the changelog. Its links lead to the files of
// the release.
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
