package images

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/example/nginx-operator/test/cluster/internal/helmtest"
	"github.com/example/nginx-operator/test/cluster/internal/layout"
	"github.com/example/nginx-operator/test/cluster/internal/registry"
)

func TestImages(t *testing.T) {
	l := helmtest.Repo(t)
	seen := map[string]bool{}
	var recipes []recipe
	for _, part := range append([]layout.Part{layout.Base}, layout.Parts...) {
		more, err := recipesOf(l, part, nil)
		if err != nil {
			t.Fatal(err)
		}
		recipes = append(recipes, more...)
	}
	for _, r := range recipes {
		if r.base != "" && !seen[r.base] {
			t.Errorf("%v: no image %s comes before it", r.names, r.base)
		}
		for _, name := range r.names {
			ref, err := registry.Parse(name)
			if err != nil || ref.String() != name {
				t.Errorf("%s is not a full name: %v", name, err)
			}
			if seen[name] {
				t.Errorf("%s is there twice", name)
			}
			seen[name] = true
		}
		if r.write == nil {
			t.Errorf("%v has no content", r.names)
		}
	}
}

// TestDefaultImagesOfReleases checks that the cluster has the default images of this release and of
// all earlier releases.
func TestDefaultImagesOfReleases(t *testing.T) {
	repo := helmtest.Repo(t).Repo
	manifests, err := filepath.Glob(filepath.Join(repo, "catalog", "nginx-operator", "bundles", "*.yaml"))
	if err != nil || len(manifests) == 0 {
		t.Fatal("no bundles of releases", err)
	}
	for _, file := range append(manifests, filepath.Join(repo, "config", "manager", "manager.yaml")) {
		text, err := os.ReadFile(file) //nolint:gosec // a file of the repository
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range regexp.MustCompile(regexp.QuoteMeta(nginxRepository)+`:[0-9][0-9.]*`).FindAllString(string(text), -1) {
			if !slices.Contains(standIns, name) {
				t.Errorf("%s names %s, which the cluster does not have", file, name)
			}
		}
	}
}

func TestSkipNginxFile(t *testing.T) {
	for name, want := range map[string]bool{
		"/usr/sbin/nginx":                         false,
		"/etc/nginx/mime.types":                   false,
		"/lib/x86_64-linux-gnu/libc.so.6":         false,
		"/usr/share/doc":                          true,
		"/usr/share/doc/nginx/README":             true,
		"/usr/share/documents":                    false,
		"/etc/nginx/sites-enabled/default":        true,
		"/usr/lib/x86_64-linux-gnu/gconv/BIG5.so": true,
		"/lib/x86_64-linux-gnu/libnss_files.so.2": true,
		"/usr/share/nginx/html/index.html":        false,
	} {
		if got := skipNginxFile(name); got != want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}
