package main

import (
	"crypto/sha256"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const testCSV = `metadata:
  annotations:
    containerImage: ghcr.io/example/nginx-operator:v0.10.0
    features.operators.openshift.io/disconnected: "false"
spec:
  description: Not docker.io/nginxinc/nginx:1.28.0-alpine.
  install:
    spec:
      deployments:
      - name: nginx-operator-controller-manager
        spec:
          template:
            spec:
              initContainers:
              - image: quay.io/example/init:1
                name: init
              containers:
              - env:
                - name: RELATED_IMAGE_NGINX
                  value: docker.io/nginxinc/nginx:1.28.0
                - name: OTHER
                  value: docker.io/other:1
                image: ghcr.io/example/nginx-operator:v0.10.0
                name: manager
  relatedImages:
  - image: docker.io/nginxinc/nginx:1.28.0
    name: nginx
`

// delivered creates a repository with a bundle, and selects an external cluster.
func delivered(t *testing.T) (calls func() string) {
	t.Helper()
	calls = repository(t)
	files(t, map[string]string{
		"bundle/" + csvFile: testCSV,
		kustomizationFile:   "images:\n- name: controller\n  newName: ghcr.io/example/nginx-operator\n  newTag: v0.10.0\n",
	})
	t.Setenv("CLUSTER", "external")
	t.Setenv("IMAGE_REGISTRY", "r/me")
	return calls
}

// digestOf returns the digest of an image in the registry of these tests.
func digestOf(image string) string { return fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(image))) }

// TestBundleByDigest checks that bundle and manifests reference every image by its digest in the
// registry, and that nothing else changes.
func TestBundleByDigest(t *testing.T) {
	delivered(t)
	t.Setenv("USE_IMAGE_DIGESTS", "true")
	do(t, "external")
	operator := "r/me/nginx-operator@" + digestOf("r/me/nginx-operator:v0.10.0")
	csv := strings.NewReplacer(
		"ghcr.io/example/nginx-operator:v0.10.0", operator,
		"docker.io/nginxinc/nginx:1.28.0\n", "docker.io/nginxinc/nginx@"+digestOf("docker.io/nginxinc/nginx:1.28.0")+"\n",
		"quay.io/example/init:1", "quay.io/example/init@"+digestOf("quay.io/example/init:1"),
		"  relatedImages:\n", "  relatedImages:\n  - image: "+operator+"\n    name: nginx-operator\n",
		`"false"`, `"true"`,
	).Replace(testCSV)
	want(t, map[string]string{
		externalDir + "/bundle/" + csvFile: csv,
		externalDir + "/" + kustomizationFile: "images:\n- name: controller\n  newName: r/me/nginx-operator\n  digest: " +
			digestOf("r/me/nginx-operator:v0.10.0") + "\n",
		externalDir + "/config/manager.yaml": operator,
		externalDir + "/" + chartValuesFile: "image:\n  repository: r/me/nginx-operator\n  digest: " + digestOf("r/me/nginx-operator:v0.10.0") +
			"\nnginx: docker.io/nginxinc/nginx@" + digestOf("docker.io/nginxinc/nginx:1.28.0") + "\n",
		"bundle/" + csvFile:                     testCSV,
		externalDir + "/examples/config/a.yaml": "r/me/a",
	})
	images, err := bundleImages(externalDir + "/bundle")
	if err != nil || len(images) != 3 {
		t.Errorf("got the images %q (%v)", images, err)
	}
	for _, image := range images {
		if !strings.Contains(image, "@sha256:") {
			t.Errorf("%s has no digest", image)
		}
	}
	if err := run([]string{"next"}); err == nil || !strings.Contains(err.Error(), "USE_IMAGE_DIGESTS") {
		t.Errorf("the next release by digest: got the error %v", err)
	}
}

// TestNginxImage checks that a mirrored operand image replaces the published image everywhere.
func TestNginxImage(t *testing.T) {
	delivered(t)
	t.Setenv("NGINX_IMAGE", "r/mirror/nginx:1.28.0")
	do(t, "external")
	text, err := os.ReadFile(externalDir + "/bundle/" + csvFile)
	if err != nil || strings.Count(string(text), "r/mirror/nginx:1.28.0") != 3 || strings.Contains(string(text), "docker.io/nginxinc") {
		t.Errorf("got %s (%v)", text, err)
	}
	pinned := "r/mirror/nginx@" + digestOf("nginx")
	t.Setenv("NGINX_IMAGE", pinned)
	t.Setenv("USE_IMAGE_DIGESTS", "true")
	do(t, "external")
	if images, err := bundleImages(externalDir + "/bundle"); err != nil || !slices.Contains(images, pinned) {
		t.Errorf("got %q (%v), want %s", images, err, pinned)
	}
	files(t, map[string]string{"bundle/" + csvFile: strings.ReplaceAll(testCSV, "name: nginx\n", "name: other\n")})
	if err := run([]string{"external"}); err == nil {
		t.Error("a bundle without the image is accepted")
	}
}

// TestListImages checks that the list has the image names of the catalog and the bundle. For the
// local cluster, these are the published names.
func TestListImages(t *testing.T) {
	delivered(t)
	for _, test := range []struct {
		cluster, digests string
		want             []string
	}{
		{"local", "", []string{
			"ghcr.io/example/nginx-operator-catalog:v0.10.0", "ghcr.io/example/nginx-operator-bundle:v0.10.0",
			"docker.io/nginxinc/nginx:1.28.0", "ghcr.io/example/nginx-operator:v0.10.0", "quay.io/example/init:1",
		}},
		{"external", "true", []string{
			"r/me/nginx-operator-catalog:v0.10.0", "r/me/nginx-operator-bundle@" + digestOf("r/me/nginx-operator-bundle:v0.10.0"),
			"docker.io/nginxinc/nginx@" + digestOf("docker.io/nginxinc/nginx:1.28.0"),
			"quay.io/example/init@" + digestOf("quay.io/example/init:1"),
			"r/me/nginx-operator@" + digestOf("r/me/nginx-operator:v0.10.0"),
		}},
	} {
		t.Setenv("CLUSTER", test.cluster)
		t.Setenv("USE_IMAGE_DIGESTS", test.digests)
		if test.cluster == "external" {
			do(t, "external")
		}
		p, err := load()
		must(t, err)
		images, err := p.pulled()
		if diff := cmp.Diff(test.want, images); diff != "" || err != nil {
			t.Errorf("%s: %v\n%s", test.cluster, err, diff)
		}
	}
}

// TestCatalogByDigest checks that the catalog references the bundle that was pushed before it.
func TestCatalogByDigest(t *testing.T) {
	calls := delivered(t)
	t.Setenv("USE_IMAGE_DIGESTS", "true")
	do(t, "external")
	calls()
	do(t, "image", "catalog")
	text, err := os.ReadFile(externalDir + "/" + bundlesDir + "/v0.10.0.yaml")
	bundle := "r/me/nginx-operator-bundle@" + digestOf("r/me/nginx-operator-bundle:v0.10.0")
	if err != nil || !strings.HasPrefix(string(text), "image: --alpha-image-ref-template="+bundle+"\n") {
		t.Errorf("got the catalog %s (%v)", text, err)
	}
	want(t, map[string]string{externalDir + "/" + bundlesDir + "/v0.9.0.yaml": "r/me/bundle"})
	made := calls()
	if digest, build := strings.Index(made, "oci digest"), strings.Index(made, "docker build"); digest < 0 || build < digest {
		t.Errorf("the catalog's image is not built after the catalog: %s", made)
	}
}

// TestUnknownBundle checks that a bundle without the text to replace is an error.
func TestUnknownBundle(t *testing.T) {
	delivered(t)
	t.Setenv("USE_IMAGE_DIGESTS", "true")
	for old, text := range map[string]string{
		disconnected: "other: ", "  relatedImages:\n": "  others:\n", ":1.28.0": "",
		"ghcr.io/example/nginx-operator:v0.10.0": "ghcr.io/example/other:v1",
	} {
		files(t, map[string]string{"bundle/" + csvFile: strings.ReplaceAll(testCSV, old, text)})
		if err := run([]string{"external"}); err == nil {
			t.Errorf("%q instead of %q is accepted", text, old)
		}
	}
	files(t, map[string]string{"bundle/" + csvFile: testCSV})
	do(t, "external")
}

// TestDigestsNeedARegistry checks that digests require an external cluster.
func TestDigestsNeedARegistry(t *testing.T) {
	repository(t)
	for value, wanted := range map[string]string{"true": "CLUSTER=external", "yes": "true or false"} {
		t.Setenv("USE_IMAGE_DIGESTS", value)
		if err := run([]string{"image", "operator"}); err == nil || !strings.Contains(err.Error(), wanted) {
			t.Errorf("%s: got the error %v", value, err)
		}
	}
}

func TestBaseOfDockerfile(t *testing.T) {
	got := map[string]string{}
	want := map[string]string{"../../Dockerfile": "", "../../catalog.Dockerfile": "quay.io/operator-framework/opm"}
	for file := range want {
		text, err := os.ReadFile(file)
		must(t, err)
		got[file], _, _ = strings.Cut(base(string(text)), ":")
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
