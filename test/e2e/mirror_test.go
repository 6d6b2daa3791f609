package e2e

// The installation that docs/guide/air-gapped.md describes for nodes that do not know the mirror: `make images` builds and pushes for a
// registry of another name, by digest, OLM installs from there, and operator and instances run images of that name.

import (
	"os"
	"runtime"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/example/nginx-operator/test/harness"
)

func TestMirror(t *testing.T) {
	if !suite.full {
		t.Skip("only the full run builds all images again for a mirror: make e2e-full")
	}
	if !suite.local {
		t.Skip("a mirror needs the registry of the local cluster: CLUSTER=local")
	}
	t.Run("install", testInstallFromMirror)
}

func testInstallFromMirror(t *testing.T) {
	startClean(t)
	registry := os.Getenv("IMAGE_REGISTRY")
	mirror := registry + "/mirror"
	// What make above this process was asked for is not for this one.
	_, err := command(t.Context(), "env", "--unset=MAKEFLAGS", "make", "--directory="+suite.repository, "images", "CLUSTER=external",
		"IMAGE_REGISTRY="+mirror, "USE_IMAGE_DIGESTS=true", "NGINX_IMAGE="+registry+"/"+otherImage,
		"EXPORTER_IMAGE="+registry+"/"+harness.ExporterImage, "CONTAINER_TOOL=buildah", "PLATFORMS=linux/"+runtime.GOARCH)
	must(t, err)

	namespace := newNamespace(t, restricted)
	suite.operatorNamespace = namespace
	defer func() { suite.operatorNamespace = "" }()
	applyText(t, strings.NewReplacer("NAMESPACE", namespace, "CATALOG_IMAGE", mirror+"/nginx-operator-catalog:v"+suite.version).
		Replace(harness.CatalogManifest+"---"+harness.SubscriptionManifest))
	waitForInstall(t, namespace)
	instance := newInstance(t, newNamespace(t, restricted), "web", 1)

	operators, err := operatorPods(t.Context(), namespace)
	must(t, err)
	runsFrom(t, operators, mirror+"/nginx-operator@sha256:")
	pods, err := podsOf(t.Context(), instance)
	must(t, err)
	nginx, _, _ := strings.Cut(otherImage, ":")
	runsFrom(t, pods, registry+"/"+nginx+"@sha256:")
}

// runsFrom requires Pods whose containers all have an image of this name.
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
