package main

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestNext checks that the next release is at the head of each channel that has the current release.
func TestNext(t *testing.T) {
	got, err := withRelease(testTemplate, "0.10.1", "0.10.0")
	must(t, err)
	want := `entries:
- icon:
    base64data: '@ICON@'
  name: nginx-operator
  schema: olm.package
- entries:
  - name: nginx-operator.v0.9.0
  name: stable
  package: nginx-operator
  schema: olm.channel
- entries:
  - name: nginx-operator.v0.9.0
  - name: nginx-operator.v0.10.0
    replaces: nginx-operator.v0.9.0
  - name: nginx-operator.v0.10.1
    replaces: nginx-operator.v0.10.0
  name: alpha
  package: nginx-operator
  schema: olm.channel
schema: olm.template.basic
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if _, err := withRelease(testTemplate, "0.12.0", "0.11.0"); err == nil {
		t.Error("a template without the release to replace is accepted")
	}
}

// TestCatalog checks that the catalog of this release references published images, even for an
// external cluster.
func TestCatalog(t *testing.T) {
	repository(t)
	t.Setenv("CLUSTER", "external")
	do(t, "catalog")
	text := strings.ReplaceAll(testTemplate, "@ICON@", "PHN2Zy8+")
	want(t, map[string]string{
		"catalog/nginx-operator/bundles/v0.10.0.yaml": "image: --alpha-image-ref-template=ghcr.io/example/nginx-operator-bundle:v0.10.0\n" +
			"nginx-operator.v0.10.0",
		"catalog/nginx-operator/catalog.yaml": text,
	})
	graph, err := os.ReadFile("docs/reference/upgrade-graph.md")
	if err != nil || !strings.HasSuffix(string(graph), "```mermaid\n"+text+"```\n") {
		t.Errorf("got the graph %s (%v)", graph, err)
	}
}

// TestOlderImages checks that the programs of older releases are built once, and their images once
// per cluster.
func TestOlderImages(t *testing.T) {
	calls := repository(t)
	for _, step := range []struct {
		name           string
		builds, pushes int
		newCluster     bool
	}{
		{"first", 2, 6, true},
		{"again", 0, 0, false},
		{"on another cluster", 0, 6, true},
	} {
		if step.newCluster {
			must(t, os.RemoveAll(".cluster"))
			files(t, map[string]string{".cluster/state": ""})
		}
		do(t, "older-images")
		made := calls()
		builds, pushes := strings.Count(made, "go build"), strings.Count(made, "cluster image push")
		if builds != step.builds || pushes != step.pushes {
			t.Errorf("%s: %d builds and %d pushes, want %d and %d:\n%s", step.name, builds, pushes, step.builds, step.pushes, made)
		}
	}
}
