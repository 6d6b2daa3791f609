package main

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestNext checks that the next release is at the head of each channel that has the current
// release.
func TestNext(t *testing.T) {
	got, err := withRelease(testTemplate, "0.10.1", "0.10.0")
	must(t, err)
	const head = "    replaces: nginx-operator.v0.9.0\n"
	want, err := parseTemplate(strings.Replace(testTemplate, head,
		head+"  - name: nginx-operator.v0.10.1\n    replaces: nginx-operator.v0.10.0\n", 1))
	must(t, err)
	next, err := parseTemplate(got)
	if diff := cmp.Diff(want, next); diff != "" || err != nil {
		t.Error(err, diff)
	}
	if _, err := withRelease(testTemplate, "0.12.0", "0.11.0"); err == nil {
		t.Error("a template without the release to replace is accepted")
	}
}

// TestResolve checks that the published release is the newest one, and the previous release the one
// that the catalog replaces.
func TestResolve(t *testing.T) {
	repository(t)
	files(t, map[string]string{
		"catalog/template.yaml": strings.Replace(testTemplate, "replaces: nginx-operator.v0.9.0", "replaces: nginx-operator.v0.2.0", 1),
	})
	p, err := load()
	must(t, err)
	for release, want := range map[string]string{"published": "0.9.0", "previous": "0.2.0", "0.9.0": "0.9.0"} {
		if got, err := p.resolve(release); err != nil || got != want {
			t.Errorf("%s is %q, want %s (%v)", release, got, want, err)
		}
	}
}

// TestOlderImages checks that all older releases are checked out, and only the given ones are
// built. Their programs are built once, and their images once per cluster.
func TestOlderImages(t *testing.T) {
	calls := repository(t)
	for _, step := range []struct {
		command        string
		builds, pushes int
		newCluster     bool
	}{
		{"older-images published previous", 1, 3, true},
		{"older-images", 1, 3, false},
		{"older-images", 0, 0, false},
		{"older-images", 0, 6, true},
	} {
		if step.newCluster {
			must(t, os.RemoveAll(".cluster"))
			files(t, map[string]string{".cluster/state": ""})
		}
		do(t, strings.Fields(step.command)...)
		made := calls()
		builds, pushes := strings.Count(made, "go build"), strings.Count(made, "cluster image push")
		if builds != step.builds || pushes != step.pushes {
			t.Errorf("%s: %d builds and %d pushes, want %d and %d:\n%s", step.command, builds, pushes, step.builds, step.pushes, made)
		}
		want(t, map[string]string{"dist/releases/v0.2.0/main.go": "done 0.2.0"})
	}
}
