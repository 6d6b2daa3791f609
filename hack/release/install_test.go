package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/yaml"
)

// TestInstallManifests checks that the manifests run the operator by its digest only, and that
// cert-manager's manifest adds only its objects.
func TestInstallManifests(t *testing.T) {
	p := realRelease(t)
	operator := "ghcr.io/example/nginx-operator@" + digestOf("operator")
	made, err := p.manifestFiles(operator)
	must(t, err)
	objects := map[string]sets.Set[string]{}
	for file, text := range made {
		objects[file] = sets.New[string]()
		for text := range strings.SplitSeq(string(text), "\n---\n") {
			var object metav1.PartialObjectMetadata
			must(t, yaml.Unmarshal([]byte(text), &object))
			objects[file].Insert(object.Kind + " " + object.Name)
			if object.Kind == "Deployment" {
				testOperator(t, text, operator)
			}
		}
		if strings.Contains(string(text), "ghcr.io/example/nginx-operator:") {
			t.Errorf("%s has the operator's image by tag", file)
		}
	}
	added := sets.List(objects["install-cert-manager.yaml"].Difference(objects["install.yaml"]))
	want := []string{"Certificate nginx-operator-serving-cert", "Issuer nginx-operator-selfsigned-issuer"}
	if diff := cmp.Diff(want, added); diff != "" {
		t.Errorf("cert-manager's objects: %s", diff)
	}
}

// testOperator requires the Pods to run an image, and to set no users and groups, so that
// OpenShift, which sets them, needs no manifest of its own.
func testOperator(t *testing.T, manifest, image string) {
	t.Helper()
	var operator appsv1.Deployment
	must(t, yaml.Unmarshal([]byte(manifest), &operator))
	pod := operator.Spec.Template.Spec
	container := pod.Containers[0]
	if container.Image != image {
		t.Errorf("the operator is %s, want %s", container.Image, image)
	}
	if pod.SecurityContext.RunAsUser != nil || pod.SecurityContext.FSGroup != nil || container.SecurityContext.RunAsUser != nil {
		t.Errorf("restricted-v2 refuses the Pod: %+v, %+v", pod.SecurityContext, container.SecurityContext)
	}
}
