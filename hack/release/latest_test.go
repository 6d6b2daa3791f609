package main

import (
	"os"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestLatest checks that only the command for it moves the tag latest, and only to the newest
// release of the catalog.
func TestLatest(t *testing.T) {
	calls := repository(t)
	files(t, map[string]string{
		".cluster/state": "", "dist/next/bundle.Dockerfile": "FROM scratch\n", "dist/next/catalog.Dockerfile": "FROM r/opm:v1\n",
	})
	do(t, "image", "catalog")
	do(t, "older-images")
	do(t, "next-images")
	if made := calls(); strings.Contains(made, movingTag) {
		t.Errorf("a build of images moves the tag: %s", made)
	}
	do(t, "latest")
	const want = "tag ghcr.io/example/nginx-operator-catalog:v0.10.0 latest\n"
	if made := calls(); !strings.HasSuffix(made, want) {
		t.Errorf("got the calls %s, want %s", made, want)
	}
	files(t, map[string]string{"catalog/nginx-operator/bundles/v0.11.0.yaml": ""})
	if err := run([]string{"latest"}); err == nil || !strings.Contains(err.Error(), "0.11.0") {
		t.Errorf("the tag moves back: %v", err)
	}
	if made := calls(); made != "" {
		t.Errorf("the tag moves back: %s", made)
	}
}

// TestClusterCatalogPolls checks that the manifests for OLM v1 poll the tag that moves. OLM v1
// rejects an interval for a digest.
func TestClusterCatalogPolls(t *testing.T) {
	text, err := os.ReadFile("../../config/olm-v1/catalog.yaml")
	must(t, err)
	var catalog struct {
		Spec struct {
			Source struct {
				Image struct {
					Ref                 string
					PollIntervalMinutes int
				}
			}
		}
	}
	must(t, yaml.Unmarshal(text, &catalog))
	image := catalog.Spec.Source.Image
	if image.Ref != publishedRegistry+"/nginx-operator-catalog:"+movingTag || image.PollIntervalMinutes < 1 {
		t.Errorf("the catalog is %+v", image)
	}
}
