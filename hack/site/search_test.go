package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSections(t *testing.T) {
	const rendered = `<!doctype html><nav><h2 id="x">Navigation</h2></nav><article>
		<h1 id="tls">TLS</h1><p>Certificates for the <code>spec</code>
		.</p><h2 id="renewal">Renewal <code>tls[]</code> <a class="anchor" href="#renewal">#</a></h2>
		<table><tr><td>one</td><td>two</td></tr></table>
		<pre class="mermaid">flowchart LR</pre><h5 id="small">Small</h5><p>text</p><h3 id="empty">Empty</h3></article><footer>Source</footer>`
	got, err := sections(strings.NewReader(rendered), page{path: "guide/tls/", title: "TLS"})
	want := []section{
		{URL: "guide/tls/", Page: "TLS", Heading: "TLS", Text: "Certificates for the spec ."},
		{URL: "guide/tls/#renewal", Page: "TLS", Heading: "Renewal tls[]", Text: "one two Small text"},
		{URL: "guide/tls/#empty", Page: "TLS", Heading: "Empty"},
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
	if got, err := sections(strings.NewReader("<p>text</p>"), page{}); err == nil {
		t.Errorf("a page without article: %v", got)
	}
}
