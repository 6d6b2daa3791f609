package main

import (
	"fmt"
	"io"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// section is a part of a page under one heading, as the search finds it.
type section struct {
	// URL is relative to the home page of the release.
	URL     string `json:"url"`
	Page    string `json:"page"`
	Heading string `json:"heading"`
	Text    string `json:"text"`
}

// sections returns the sections of the article of a rendered page that have text or a heading.
func sections(rendered io.Reader, p page) ([]section, error) {
	document, err := html.Parse(rendered)
	if err != nil {
		return nil, fmt.Errorf("failed to parse %s: %w", p.source, err)
	}
	var article *html.Node
	for node := range document.Descendants() {
		if node.DataAtom == atom.Article {
			article = node
			break
		}
	}
	if article == nil {
		return nil, fmt.Errorf("the page of %s has no article", p.source)
	}
	out := []section{{URL: p.path, Page: p.title, Heading: p.title}}
	collect(article, p, &out)
	for i := range out {
		out[i].Text = strings.Join(strings.Fields(out[i].Text), " ")
	}
	return out, nil
}

// collect adds the text of a node and of its children to the last section. A heading of the second
// to fourth level starts a new one.
func collect(node *html.Node, p page, out *[]section) {
	switch node.DataAtom {
	case atom.H1:
		return
	case atom.H2, atom.H3, atom.H4:
		if id := attribute(node, "id"); id != "" {
			*out = append(*out, section{URL: p.path + "#" + id, Page: p.title, Heading: strings.TrimSpace(textOf(node))})
			return
		}
	}
	if hidden(node) {
		return
	}
	last := &(*out)[len(*out)-1]
	if node.Type == html.TextNode {
		last.Text += node.Data
	}
	for child := range node.ChildNodes() {
		collect(child, p, out)
	}
	// Cells and paragraphs are words of their own.
	if node.Type == html.ElementNode && !inline[node.DataAtom] {
		(*out)[len(*out)-1].Text += " "
	}
}

var inline = map[atom.Atom]bool{atom.A: true, atom.Code: true, atom.Em: true, atom.Span: true, atom.Strong: true}

// hidden reports whether the text of an element is no content: diagrams, and links of headings to
// themselves.
func hidden(node *html.Node) bool {
	class := " " + attribute(node, "class") + " "
	return strings.Contains(class, " mermaid ") || strings.Contains(class, " anchor ") || strings.Contains(class, " toc ")
}

func textOf(node *html.Node) string {
	if node.Type == html.TextNode {
		return node.Data
	}
	out := ""
	for child := range node.ChildNodes() {
		if !hidden(child) {
			out += textOf(child)
		}
	}
	return out
}

func attribute(node *html.Node, name string) string {
	for _, a := range node.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}
