package main

import (
	"testing"
	"testing/fstest"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// docsOf returns a docs/ with the pages, of which each has only a heading and a text.
func docsOf(t *testing.T, texts map[string]string) []page {
	t.Helper()
	docs := fstest.MapFS{}
	for name, text := range texts {
		docs[name] = &fstest.MapFile{Data: []byte(text)}
	}
	pages, _, err := readDocs(docs)
	must(t, err)
	return pages
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

// Pages of the root of the repository are on the site if a table of the user guide lists them, and
// links lead to them.
func TestRootPages(t *testing.T) {
	pages := docsOf(t, map[string]string{
		"user-guide.md": "# G\n\n| page | content |\n|---|---|\n| [Contributing](../CONTRIBUTING.md) | how to |\n\n[No](../SECURITY.md)\n",
		"faq.md":        "# F",
	})
	root, err := readRoot(fstest.MapFS{
		"CONTRIBUTING.md": &fstest.MapFile{Data: []byte("# Contribute\n\nSee the [FAQ](docs/faq.md).\n")},
		"SECURITY.md":     &fstest.MapFile{Data: []byte("# Security\n")},
	}, pages)
	must(t, err)
	if len(root) != 1 || root[0].path != "contributing/" || root[0].title != "Contribute" {
		t.Fatalf("the root has the pages %+v", root)
	}

	r := release{version: "v1.2.3", pages: append(pages, root...)}
	for _, c := range []struct{ source, destination, want string }{
		{"../CONTRIBUTING.md", "docs/faq.md#a", "/base/v1.2.3/faq/#a"},
		{"../CONTRIBUTING.md", "LICENSE", repository + "/blob/v1.2.3/LICENSE"},
		{"faq.md", "../CONTRIBUTING.md", "/base/v1.2.3/contributing/"},
		{"faq.md", "../SECURITY.md", repository + "/blob/v1.2.3/SECURITY.md"},
	} {
		if got := r.resolve(c.source, c.destination, "/base/"); got != c.want {
			t.Errorf("%s links to %s: got %s, want %s", c.source, c.destination, got, c.want)
		}
	}
	groups, _ := navigation(r.pages)
	if last := groups[len(groups)-1].Pages; last[len(last)-1].Path != "contributing/" {
		t.Errorf("the navigation is %+v", groups)
	}
	if _, err := readRoot(fstest.MapFS{}, pages); err == nil {
		t.Error("a page that does not exist is no error")
	}
}
