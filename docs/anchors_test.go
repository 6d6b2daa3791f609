package docs_test

import (
	"strings"
	"testing"
)

// Each anchor that a page had in 0.8.0, before it was split, still exists: links from older
// releases, alerts, and search engines lead to it.
func TestAnchorsOfSplitPages(t *testing.T) {
	lines := strings.Fields(read(t, "docs/testdata/anchors-0.8.0.txt"))
	anchorsOf := map[string]map[string]bool{}
	for _, line := range lines {
		page, anchor, _ := strings.Cut(line, "#")
		if anchorsOf[page] == nil {
			anchorsOf[page] = anchors(read(t, page))
		}
		if !anchorsOf[page][anchor] {
			t.Errorf("%s lost the anchor #%s", page, anchor)
		}
	}
	if len(anchorsOf) != 5 || len(lines) < 150 {
		t.Errorf("%d anchors of %d pages", len(lines), len(anchorsOf))
	}
}

// maxWords is the length of the pages that were split, so that they stay readable.
const maxWords = 2000

// The pages that replaced longer ones stay short.
func TestLengthOfSplitPages(t *testing.T) {
	split := 0
	for name, text := range pages(t) {
		isSplit := false
		for directory := range indexes {
			isSplit = isSplit || strings.HasPrefix(name, directory+"/") || name == indexes[directory]
		}
		if !isSplit || strings.HasPrefix(name, "docs/adr/") {
			continue
		}
		if split++; len(strings.Fields(text)) > maxWords {
			t.Errorf("%s has %d words, more than %d: split it by what its readers want", name, len(strings.Fields(text)), maxWords)
		}
	}
	if split < 40 {
		t.Errorf("%d pages", split)
	}
}
