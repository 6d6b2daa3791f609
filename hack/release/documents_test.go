package main

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestAirGappedNamesEveryImage checks that the page on air-gapped installations lists exactly the
// images that a cluster pulls for this release, with the tags of this release.
func TestAirGappedNamesEveryImage(t *testing.T) {
	inDirectory(t, "../..")
	p, err := load()
	must(t, err)
	images, err := p.pulled()
	must(t, err)
	text, err := os.ReadFile("docs/guide/air-gapped.md")
	must(t, err)
	var want, got []string
	for _, image := range images {
		repository, err := untagged(image)
		must(t, err)
		want = append(want, repository)
	}
	for _, row := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\|").FindAllStringSubmatch(string(text), -1) {
		got = append(got, row[1])
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("images (-bundle +page):\n%s", diff)
	}
	tagged := regexp.MustCompile(`/(nginx[a-z-]*):(v?[0-9.]+)\b`).FindAllStringSubmatch(string(text), -1)
	if len(tagged) == 0 {
		t.Error("the page names no image with its tag")
	}
	for _, image := range tagged {
		if !slices.ContainsFunc(images, func(pulled string) bool { return strings.HasSuffix(pulled, image[0]) }) {
			t.Errorf("the page names %s, this release has %q", image[0], images)
		}
	}
	if !strings.Contains(string(text), "\nVERSION="+p.version+"\n") {
		t.Errorf("the page does not set VERSION=%s", p.version)
	}
}
