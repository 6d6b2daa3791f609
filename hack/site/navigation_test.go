package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

const guide = `# User guide

## Start

| page | content |
|---|---|
| [Install it](install.md) | see also the [FAQ](faq.md) |
| [Fields](guide/fields.md) | all |

## Journeys

[Each page](journeys/README.md) is about one task.

| page | task |
|---|---|
| [Move](journeys/move.md) | a Deployment |

## Nothing

## Reference

| page | content |
|---|---|
| [FAQ](faq.md) | answers |
| [Decisions](adr/README.md) | reasons |

To develop, see [development](development.md) and [contributing](../CONTRIBUTING.md).
`

func TestNavigation(t *testing.T) {
	pages := docsOf(t, map[string]string{
		"user-guide.md": guide, "install.md": "# Installation", "faq.md": "# FAQ", "guide/fields.md": "# All fields",
		"guide/fields/tls.md": "# TLS", "journeys/README.md": "# Journeys", "journeys/move.md": "# Move it",
		"adr/README.md": "# ADR", "adr/0001-a.md": "# A",
		"development.md": "# Development", "unlisted.md": "# Unlisted",
	})
	got, isIndex := navigation(pages)
	want := []group{
		{Title: "Start", Pages: []entry{
			{Title: "Install it", Path: "install/"},
			{Title: "Fields", Path: "guide/fields/", Children: []entry{{Title: "TLS", Path: "guide/fields/tls/"}}},
		}},
		{Title: "Journeys", Pages: []entry{{Title: "Overview", Path: "journeys/"}, {Title: "Move", Path: "journeys/move/"}}},
		{Title: "Reference", Pages: []entry{
			{Title: "FAQ", Path: "faq/"},
			{Title: "Decisions", Path: "adr/", Children: []entry{{Title: "A", Path: "adr/0001-a/"}}},
			{Title: "Development", Path: "development/"},
		}},
		{Title: "More", Pages: []entry{{Title: "Unlisted", Path: "unlisted/"}}},
	}
	if diff := cmp.Diff(want, got); diff != "" || !isIndex {
		t.Errorf("index: %v\n%s", isIndex, diff)
	}
	var order []string
	for _, e := range inOrder(got) {
		order = append(order, e.Path)
	}
	wantOrder := []string{
		"", "install/", "guide/fields/", "guide/fields/tls/", "journeys/", "journeys/move/", "faq/", "adr/", "adr/0001-a/",
		"development/", "unlisted/",
	}
	if diff := cmp.Diff(wantOrder, order); diff != "" {
		t.Error(diff)
	}
}

// A guide with few pages in tables is a text, and the navigation lists all pages.
func TestNavigationWithoutIndex(t *testing.T) {
	pages := docsOf(t, map[string]string{
		"user-guide.md": "# User guide\n\n## Use\n\nSee [the FAQ](faq.md).\n\n```\n| [no](install.md) | table |\n```\n",
		"faq.md":        "# FAQ", "install.md": "# Install", "adr/README.md": "# ADR", "adr/0001-a.md": "# A",
	})
	got, isIndex := navigation(pages)
	want := []group{{Title: "Pages", Pages: []entry{
		{Title: "ADR", Path: "adr/", Children: []entry{{Title: "A", Path: "adr/0001-a/"}}},
		{Title: "FAQ", Path: "faq/"},
		{Title: "Install", Path: "install/"},
	}}}
	if diff := cmp.Diff(want, got); diff != "" || isIndex {
		t.Errorf("index: %v\n%s", isIndex, diff)
	}
}

func TestCompareVersions(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"v0.10.0", "v0.9.1", 1}, {"v0.3.0", "v0.3.1", -1}, {"v1.0.0", "v1.0.0", 0}} {
		if got := compareVersions(c.a, c.b); got != c.want {
			t.Errorf("%s and %s: %d", c.a, c.b, got)
		}
	}
}
