package images

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/example/nginx-operator/test/cluster/internal/helmtest"
)

// TestBaseOfCatalog checks that the cluster has the base image of this release's catalog, under the
// tag in front of its digest.
func TestBaseOfCatalog(t *testing.T) {
	l := helmtest.Repo(t)
	text, err := os.ReadFile(filepath.Join(l.Repo, "catalog.Dockerfile"))
	if err != nil {
		t.Fatal(err)
	}
	base := regexp.MustCompile(`(?m)^ARG BASE=(\S+)@sha256:[0-9a-f]{64}$`).FindSubmatch(text)
	recipes, err := catalogImages(l)
	if err != nil || len(recipes) != 1 || base == nil {
		t.Fatalf("the base is %s, and there are %d recipes: %v", base, len(recipes), err)
	}
	if !slices.Contains(recipes[0].names, string(base[1])) {
		t.Errorf("the cluster has %q, and the catalog is based on %s", recipes[0].names, base[1])
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
