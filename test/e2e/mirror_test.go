package e2e

// The installation of docs/guide/air-gapped.md for nodes that do not know the mirror. `make images`
// builds and pushes images by digest for a registry with another name. OLM installs from that
// registry, and the operator and the instances run images with that name.

import (
	"os"
	"runtime"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/example/nginx-operator/test/harness"
)

func TestMirror(t *testing.T) {
	if !suite.local {
		t.Skip("a mirror needs the registry of the local cluster: CLUSTER=local")
	}
	registry := os.Getenv("IMAGE_REGISTRY")
	mirror := registry + "/mirror"
	// The options of the make process that runs this test must not apply to this one.
	_, err := command(t.Context(), "env", "--unset=MAKEFLAGS", "make", "--directory="+suite.repository, "images", "CLUSTER=external",
		"IMAGE_REGISTRY="+mirror, "USE_IMAGE_DIGESTS=true", "NGINX_IMAGE="+registry+"/"+otherImage,
		"EXPORTER_IMAGE="+registry+"/"+harness.ExporterImage, "CATALOG_BASE="+registry+"/quay.io/operator-framework/opm:latest",
		"CONTAINER_TOOL=buildah", "PLATFORMS=linux/"+runtime.GOARCH)
	must(t, err)

	namespace := startIn(t, restricted)
	applyText(t, strings.NewReplacer("NAMESPACE", namespace, "CATALOG_IMAGE", mirror+"/nginx-operator-catalog:v"+suite.version).
		Replace(harness.CatalogManifest+harness.SubscriptionManifest))
	waitForInstall(t, namespace)
	instance := newInstance(t, newNamespace(t, restricted), "web", 1)

	operators, err := operatorPods(t.Context(), namespace)
	must(t, err)
	runsFrom(t, operators, mirror+"/nginx-operator@sha256:")
	for _, variable := range operators[0].Spec.Containers[0].Env {
		if receiver := mirror + "/nginx-request-metrics@sha256:"; variable.Name == "RELATED_IMAGE_NGINX_REQUEST_METRICS" &&
			!strings.HasPrefix(variable.Value, receiver) {
			t.Errorf("%s is %s, want %s", variable.Name, variable.Value, receiver)
		}
	}
	pods, err := podsOf(t.Context(), instance)
	must(t, err)
	nginx, _, _ := strings.Cut(otherImage, ":")
	runsFrom(t, pods, registry+"/"+nginx+"@sha256:")
}

// runsFrom requires at least one Pod, and an image with this prefix in each container.
func runsFrom(t *testing.T, pods []corev1.Pod, image string) {
	t.Helper()
	if len(pods) == 0 {
		t.Errorf("no Pod runs %s", image)
	}
	for i := range pods {
		for _, container := range pods[i].Spec.Containers {
			if !strings.HasPrefix(container.Image, image) {
				t.Errorf("%s runs %s, want %s", pods[i].Name, container.Image, image)
			}
		}
	}
}
