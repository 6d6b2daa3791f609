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

// delivered makes a repository with a bundle, for an external cluster.
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

// digestOf returns the digest that the registry of these tests has for an image.
func digestOf(image string) string { return fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(image))) }

// Every image of the bundle is named by the digest that the registry has, wherever bundle and manifests name it, and nothing else changes.
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
		externalDir + "/config/manager.yaml":    operator,
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

// A mirror's image of the operands is named wherever the published one was.
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

// What a cluster pulls is listed by the names that catalog and bundle give it, for the local cluster those that are published.
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
		if err != nil {
			t.Fatal(err)
		}
		images, err := p.pulled()
		if diff := cmp.Diff(test.want, images); diff != "" || err != nil {
			t.Errorf("%s: %v\n%s", test.cluster, err, diff)
		}
	}
}

// The catalog names the bundle that was pushed before it.
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
	if made := calls(); strings.Index(made, "oci digest") > strings.Index(made, "docker build") {
		t.Errorf("the catalog's image is built before the catalog: %s", made)
	}
}

// A bundle that does not say what is to be replaced is told of, not published as it is.
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

// Digests are for an external cluster.
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
		if err != nil {
			t.Fatal(err)
		}
		got[file], _, _ = strings.Cut(base(string(text)), ":")
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
