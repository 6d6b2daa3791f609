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
// only, and the range of OpenShift versions. It has no replaces, because no release is published in
// community-operators. `make validate` runs the pipeline's validators on the bundle itself.
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

	text := files["operators/nginx-operator/"+p.version+"/"+csvFile]
	var csv clusterServiceVersion
	must(t, yaml.Unmarshal([]byte(text), &csv))
	if !slices.Contains(csv.Spec.RelatedImages, relatedImage{Name: operatorName, Image: operator}) {
		t.Errorf("relatedImages is %v", csv.Spec.RelatedImages)
	}
	if !strings.Contains(text, "\n    containerImage: "+operator+"\n") || strings.Contains(text, "\n  replaces: ") {
		t.Errorf("containerImage is not %s, or the bundle has replaces", operator)
	}
	var metadata struct{ Annotations map[string]string }
	must(t, yaml.Unmarshal([]byte(files["operators/nginx-operator/"+p.version+"/metadata/annotations.yaml"]), &metadata))
	var openShift int
	_, err = fmt.Sscanf(metadata.Annotations["com.redhat.openshift.versions"], "v4.%d", &openShift)
	// OpenShift 4.20 has Kubernetes 1.33.
	if want := fmt.Sprintf("1.%d.0", openShift+13); csv.Spec.MinKubeVersion != want {
		t.Errorf("the bundle needs Kubernetes %s, and its OpenShift has %s (%v)", csv.Spec.MinKubeVersion, want, err)
	}
	var ci struct {
		UpdateGraph         string
		AddReviewers, Merge bool
		Reviewers           []string
	}
	must(t, yaml.UnmarshalStrict([]byte(files["operators/nginx-operator/ci.yaml"]), &ci))
	if ci.UpdateGraph != "replaces-mode" {
		t.Errorf("updateGraph is %q", ci.UpdateGraph)
	}
}
