package main

import (
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestNext checks that the next release is a copy of the delivery under the next version, at the
// head of each channel that has the current release.
func TestNext(t *testing.T) {
	repository(t)
	t.Setenv("CLUSTER", "external")
	t.Setenv("IMAGE_REGISTRY", "r/me")
	do(t, "external")
	do(t, "next")
	want(t, map[string]string{
		"dist/external/examples/config/a.yaml":       "r/me/a",
		"dist/next/config/manager.yaml":              "r/me/nginx-operator:v0.10.1",
		"dist/next/charts/nginx-operator/Chart.yaml": "version: 0.10.1",
		"dist/next/catalog/nginx-operator/bundles/v0.10.1.yaml": "image: --alpha-image-ref-template=r/me/nginx-operator-bundle:v0.10.1\n" +
			"nginx-operator.v0.10.1",
		"dist/next/catalog/nginx-operator/catalog.yaml": `entries:
- icon:
    base64data: PHN2Zy8+
  name: nginx-operator
  schema: olm.package
- entries:
  - name: nginx-operator.v0.9.0
  name: stable
  package: nginx-operator
  schema: olm.channel
- entries:
  - name: nginx-operator.v0.9.0
  - name: nginx-operator.v0.10.0
    replaces: nginx-operator.v0.9.0
  - name: nginx-operator.v0.10.1
    replaces: nginx-operator.v0.10.0
  name: alpha
  package: nginx-operator
  schema: olm.channel
schema: olm.template.basic
`,
	})
	if _, err := withRelease(testTemplate, "0.12.0", "0.11.0"); err == nil {
		t.Error("a template without the release to replace is accepted")
	}
}

// TestCatalog checks that the catalog of this release references published images, even for an
// external cluster.
func TestCatalog(t *testing.T) {
	repository(t)
	t.Setenv("CLUSTER", "external")
	do(t, "catalog")
	text := strings.ReplaceAll(testTemplate, "@ICON@", "PHN2Zy8+")
	want(t, map[string]string{
		"catalog/nginx-operator/bundles/v0.10.0.yaml": "image: --alpha-image-ref-template=ghcr.io/example/nginx-operator-bundle:v0.10.0\n" +
			"nginx-operator.v0.10.0",
		"catalog/nginx-operator/catalog.yaml": text,
	})
	graph, err := os.ReadFile("docs/reference/upgrade-graph.md")
	if err != nil || !strings.HasSuffix(string(graph), "```mermaid\n"+text+"```\n") {
		t.Errorf("got the graph %s (%v)", graph, err)
	}
}

// TestOlderImages checks that the programs of older releases are built once, and their images once
// per cluster.
func TestOlderImages(t *testing.T) {
	calls := repository(t)
	const flags = " -buildvcs=false -trimpath -ldflags=-s -w -X main.version="
	const builds = "go build -C dist/releases/v0.2.0" + flags + "0.2.0 -o dist/linux_amd64/manager .\n" +
		"go build -C dist/releases/v0.9.0" + flags + "0.9.0 -o dist/linux_amd64/manager .\n"
	const pushes = `cluster image push ghcr.io/example/nginx-operator:v0.2.0
cluster image push ghcr.io/example/nginx-operator-bundle:v0.2.0
cluster image push ghcr.io/example/nginx-operator-catalog:v0.2.0
cluster image push ghcr.io/example/nginx-operator:v0.9.0
cluster image push ghcr.io/example/nginx-operator-bundle:v0.9.0
cluster image push ghcr.io/example/nginx-operator-catalog:v0.9.0
`
	for _, step := range []struct {
		name, builds, pushes string
		newCluster           bool
	}{
		{"first", builds, pushes, true},
		{"again", "", "", false},
		{"on another cluster", "", pushes, true},
	} {
		if step.newCluster {
			if err := os.RemoveAll(".cluster"); err != nil {
				t.Fatal(err)
			}
			files(t, map[string]string{".cluster/state": ""})
		}
		do(t, "older-images")
		text := calls()
		if diff := cmp.Diff(step.builds+step.pushes, matching(text, "go build")+matching(text, "cluster image push")); diff != "" {
			t.Errorf("%s: %s", step.name, diff)
		}
	}
}

// matching returns the lines of text that start with prefix.
func matching(text, prefix string) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, prefix) {
			out.WriteString(line)
		}
	}
	return out.String()
}

// TestPublish checks the commands for each engine. The local cluster builds a single image. Docker
// pushes one image per platform and then a manifest list. Other engines fill a manifest list. Each
// pushed image is attested.
func TestPublish(t *testing.T) {
	calls := repository(t)
	const time = "--timestamp=1795429755"
	attest := " attest -commit=" + git(t, "rev-parse", "HEAD") + " -time=2026-11-23T10:29:15Z -modified=true"
	local := `cluster exec -- sh -c exec bin/oci "$0" -registry="$IMAGE_REGISTRY" "$@"` + attest
	const cluster = "cluster image build -t ghcr.io/example/nginx-operator"
	build := `go build -trimpath -ldflags=-s -w -X main.version=0.10.0 -o dist/linux_amd64/manager .
`
	for _, test := range []struct{ cluster, tool, platforms, kind, want string }{
		{"local", "", "linux/amd64", "operator", build + cluster + ":v0.10.0 " + time + ` -f Dockerfile .
cluster image push ghcr.io/example/nginx-operator:v0.10.0
` + local + " -base= -out=dist -parameter=target=operator-image -parameter=CLUSTER=local -parameter=PLATFORMS=linux/amd64" +
			" ghcr.io/example/nginx-operator:v0.10.0\n"},
		{"local", "", "linux/amd64", "scorecard", `go build -trimpath -ldflags=-s -w -o dist/linux_amd64/scorecard ./test/scorecard
cluster image build -t ghcr.io/example/nginx-operator-scorecard:v0.10.0 ` + time + ` -f test/scorecard/Dockerfile .
cluster image push ghcr.io/example/nginx-operator-scorecard:v0.10.0
` + local + " -base= -out=dist -parameter=target=scorecard-image -parameter=CLUSTER=local -parameter=PLATFORMS=linux/amd64" +
			" ghcr.io/example/nginx-operator-scorecard:v0.10.0\n"},
		{"local", "", "linux/amd64", "catalog", cluster + "-catalog:v0.10.0 " + time + ` -f catalog.Dockerfile .
cluster image push ghcr.io/example/nginx-operator-catalog:v0.10.0
` + local + " -base=quay.io/opm:v1 -out=dist -parameter=target=catalog-image -parameter=CLUSTER=local -parameter=PLATFORMS=linux/amd64" +
			" ghcr.io/example/nginx-operator-catalog:v0.10.0\n"},
		{"external", "", "linux/amd64", "operator", build + `docker info
docker manifest rm r/me/nginx-operator:v0.10.0
docker build --platform=linux/amd64 --build-arg=TARGETARCH=amd64 -t r/me/nginx-operator:v0.10.0-amd64 -f Dockerfile .
docker push r/me/nginx-operator:v0.10.0-amd64
docker manifest create r/me/nginx-operator:v0.10.0 r/me/nginx-operator:v0.10.0-amd64
docker manifest push --purge r/me/nginx-operator:v0.10.0
oci` + attest + " -base= -out=dist -parameter=target=operator-image -parameter=CLUSTER=external -parameter=PLATFORMS=linux/amd64" +
			" -parameter=IMAGE_REGISTRY=r/me -parameter=NGINX_IMAGE= -parameter=EXPORTER_IMAGE= -parameter=USE_IMAGE_DIGESTS=false" +
			" r/me/nginx-operator:v0.10.0\n"},
		{"external", "podman", "linux/amd64 linux/arm64", "bundle", `podman manifest rm r/me/nginx-operator-bundle:v0.10.0
podman build --platform=linux/amd64 --build-arg=TARGETARCH=amd64 --build-arg=BUILDPLATFORM=linux/` + runtime.GOARCH +
			" " + time + ` --manifest=r/me/nginx-operator-bundle:v0.10.0 -f dist/external/bundle.Dockerfile dist/external
podman build --platform=linux/arm64 --build-arg=TARGETARCH=arm64 --build-arg=BUILDPLATFORM=linux/` + runtime.GOARCH +
			" " + time + ` --manifest=r/me/nginx-operator-bundle:v0.10.0 -f dist/external/bundle.Dockerfile dist/external
podman manifest push --all r/me/nginx-operator-bundle:v0.10.0 docker://r/me/nginx-operator-bundle:v0.10.0
oci` + attest + " -base= -out=dist -parameter=target=bundle-image -parameter=CLUSTER=external" +
			" -parameter=PLATFORMS=linux/amd64 linux/arm64 -parameter=IMAGE_REGISTRY=r/me" +
			" -parameter=NGINX_IMAGE= -parameter=EXPORTER_IMAGE= -parameter=USE_IMAGE_DIGESTS=false" +
			" r/me/nginx-operator-bundle:v0.10.0\n"},
	} {
		t.Setenv("CLUSTER", test.cluster)
		t.Setenv("IMAGE_REGISTRY", "r/me")
		t.Setenv("CONTAINER_TOOL", test.tool)
		t.Setenv("PLATFORMS", test.platforms)
		do(t, "image", test.kind)
		if diff := cmp.Diff(test.want, calls()); diff != "" {
			t.Errorf("%s %s with %q: %s", test.cluster, test.kind, test.tool, diff)
		}
	}
	if err := run([]string{"image", "other"}); err == nil {
		t.Error("an unknown image is accepted")
	}
}
