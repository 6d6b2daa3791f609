package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestSubmission checks what a submission adds to the bundle: the images of this project by digest
// only, and the range of OpenShift versions. It has no replaces, because the graph is in the
// template. `make validate` runs the pipeline's validators on the bundle itself.
func TestSubmission(t *testing.T) {
	p := realRelease(t)
	operator := "ghcr.io/example/nginx-operator@" + digestOf("operator")
	made, err := p.submissionFiles(operator)
	must(t, err)
	files := untar(t, made[submissionArchive])
	for name, text := range files {
		if tagged := regexp.MustCompile(`ghcr\.io/example/[a-z-]+:\S*`).FindString(text); tagged != "" {
			t.Errorf("%s has %s, which is no digest", name, tagged)
		}
		if strings.Contains(text, "\nkind: NetworkPolicy\n") { // the pipeline refuses it
			t.Errorf("%s is a NetworkPolicy", name)
		}
	}

	repositories, err := readCommunity()
	must(t, err)
	for _, repository := range repositories {
		testSubmittedBundle(t, files, repository.Name+"/operators/nginx-operator/"+p.version+"/", operator)
	}
	roots := map[string]bool{}
	for name := range files {
		root, _, _ := strings.Cut(name, "/")
		roots[root] = true
	}
	if len(roots) != 2 || len(repositories) != 2 {
		t.Errorf("the archive has %v for %d repositories", roots, len(repositories))
	}
}

func testSubmittedBundle(t *testing.T, files map[string]string, root, operator string) {
	t.Helper()
	text := files[root+csvFile]
	var csv clusterServiceVersion
	must(t, yaml.Unmarshal([]byte(text), &csv))
	if !slices.Contains(csv.Spec.RelatedImages, relatedImage{Name: operatorName, Image: operator}) {
		t.Errorf("relatedImages is %v", csv.Spec.RelatedImages)
	}
	if !strings.Contains(text, "\n    containerImage: "+operator+"\n") || strings.Contains(text, "\n  replaces: ") {
		t.Errorf("containerImage is not %s, or the bundle has replaces", operator)
	}
	var metadata struct{ Annotations map[string]string }
	must(t, yaml.Unmarshal([]byte(files[root+"metadata/annotations.yaml"]), &metadata))
	var openShift int
	_, err := fmt.Sscanf(metadata.Annotations["com.redhat.openshift.versions"], "v4.%d", &openShift)
	// OpenShift 4.20 has Kubernetes 1.33.
	if want := fmt.Sprintf("1.%d.0", openShift+13); csv.Spec.MinKubeVersion != want {
		t.Errorf("the bundle needs Kubernetes %s, and its OpenShift has %s (%v)", csv.Spec.MinKubeVersion, want, err)
	}
}
