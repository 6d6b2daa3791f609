package main

import (
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

// docsOf returns a docs/ with the pages, of which each has only a heading and a text.
func docsOf(t *testing.T, texts map[string]string) []page {
	t.Helper()
	docs := fstest.MapFS{}
	for name, text := range texts {
		docs[name] = &fstest.MapFile{Data: []byte(text)}
	}
	pages, _, err := readDocs(docs)
	if err != nil {
		t.Fatal(err)
	}
	return pages
}

func TestReadDocs(t *testing.T) {
	got := docsOf(t, map[string]string{
		"user-guide.md": "# User guide\n", "adr/README.md": "# Decisions\n", "adr/0001-a.md": "# `A` and **B**\n\ntext\n",
		"docs.go": "package docs\n",
	})
	want := []page{
		{source: "adr/0001-a.md", path: "adr/0001-a/", title: "A and B", text: "# `A` and **B**\n\ntext\n"},
		{source: "adr/README.md", path: "adr/", title: "Decisions", text: "# Decisions\n"},
		{source: "user-guide.md", path: "", title: "User guide", text: "# User guide\n"},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(page{})); diff != "" {
		t.Error(diff)
	}
	docs := fstest.MapFS{"user-guide.md": {Data: []byte("# G")}, "guide/a.svg": {}, "b.png": {}, "c.json": {}}
	if _, images, err := readDocs(docs); err != nil || !cmp.Equal(images, []string{"b.png", "guide/a.svg"}) {
		t.Errorf("images %v, %v", images, err)
	}
	for name, docs := range map[string]fstest.MapFS{
		"no heading": {"user-guide.md": {Data: []byte("text\n\n# Late\n")}},
		"no index":   {"install.md": {Data: []byte("# Install\n")}},
	} {
		if pages, _, err := readDocs(docs); err == nil {
			t.Errorf("%s: %v", name, pages)
		}
	}
}

func TestWithoutTitle(t *testing.T) {
	if got := withoutTitle("# Guide\n\n# A comment in code\n"); got != "\n\n# A comment in code\n" {
		t.Errorf("%q", got)
	}
}

func TestResolve(t *testing.T) {
	r := release{version: "v1.2.3", images: []string{"guide/a b.svg"}}
	r.pages = docsOf(t, map[string]string{
		"user-guide.md": "# G", "faq.md": "# F", "guide/fields.md": "# F", "guide/fields/tls.md": "# T", "adr/README.md": "# A",
		"adr/0001-a.md": "# A",
	})
	for _, c := range []struct{ source, destination, want string }{
		{"user-guide.md", "guide/fields.md", "/base/v1.2.3/guide/fields/"},
		{"guide/fields.md", "fields/tls.md#tls", "/base/v1.2.3/guide/fields/tls/#tls"},
		{"guide/fields/tls.md", "../fields.md", "/base/v1.2.3/guide/fields/"},
		{"guide/fields/tls.md", "../../user-guide.md#start", "/base/v1.2.3/#start"},
		{"adr/0001-a.md", "README.md", "/base/v1.2.3/adr/"},
		{"user-guide.md", "adr", "/base/v1.2.3/adr/"},
		{"user-guide.md", "adr/", "/base/v1.2.3/adr/"},
		{"guide/fields.md", "../../config/samples/web.yaml#L3", repository + "/blob/v1.2.3/config/samples/web.yaml#L3"},
		{"faq.md", "../README.md", repository + "/blob/v1.2.3/README.md"},
		{"faq.md", "reference/nightly.json", repository + "/blob/v1.2.3/docs/reference/nightly.json"},
		{"guide/fields.md", "a%20b.svg", "/base/v1.2.3/guide/a%20b.svg"},
		{"faq.md", "#section", "#section"},
		{"faq.md", "https://example.com/a.md", "https://example.com/a.md"},
		{"faq.md", "mailto:a@example.com", "mailto:a@example.com"},
		{"faq.md", "//example.com/a.md", "//example.com/a.md"},
	} {
		if got := r.resolve(c.source, c.destination, "/base/"); got != c.want {
			t.Errorf("%s links to %s: got %s, want %s", c.source, c.destination, got, c.want)
		}
	}
}

func TestLinks(t *testing.T) {
	pages := docsOf(t, map[string]string{
		"user-guide.md": "# G\n\n| [a `b`](faq.md#x) | [![c](d.svg)](install.md) [e](#f)\n[g](https://example.com)\n",
		"faq.md":        "# F", "install.md": "# I",
	})
	r := release{version: "v1.2.3", pages: pages, images: []string{"d.svg"}}
	got := r.links(pages[2], "/")
	want := map[string]string{"faq.md#x": "/v1.2.3/faq/#x", "install.md": "/v1.2.3/install/", "d.svg": "/v1.2.3/d.svg"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
