package main

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestImagesByDigest checks that bundle, manifests, and catalog reference every image by its digest
// in the registry, or a mirrored image by its given digest, and that nothing else changes.
func TestImagesByDigest(t *testing.T) {
	realRelease(t)
	mirrored := "r/mirror/nginx@" + digestOf("nginx")
	for name, value := range map[string]string{
		"CLUSTER": "external", "IMAGE_REGISTRY": "r/me", "USE_IMAGE_DIGESTS": "true", "NGINX_IMAGE": mirrored, "CONTAINER_TOOL": "true",
	} {
		t.Setenv(name, value)
	}
	text, err := os.ReadFile("bundle/" + csvFile)
	must(t, err)
	csv, err := readCSV("bundle")
	must(t, err)
	nginx, exporter := csv.Spec.RelatedImages[0].Image, csv.Spec.RelatedImages[1].Image
	p, err := load()
	must(t, err)
	byDigest := func(image string) string {
		repository, err := untagged(image)
		must(t, err)
		return repository + "@" + digestOf(image)
	}
	tagged, receiverImage := p.image("operator", p.version), p.registry+strings.TrimPrefix(csv.Spec.RelatedImages[2].Image, publishedRegistry)
	operator := byDigest(tagged)

	must(t, p.copyForExternal())
	want(t, map[string]string{
		"bundle/" + csvFile: string(text),
		externalDir + "/bundle/" + csvFile: strings.NewReplacer(
			publishedRegistry+"/nginx-operator:v"+p.version, operator, csv.Spec.RelatedImages[2].Image, byDigest(receiverImage),
			publishedRegistry+"/", p.registry+"/",
			nginx, mirrored, exporter, byDigest(exporter),
			relatedImages, relatedImages+"  - image: "+operator+"\n    name: nginx-operator\n", disconnected+`"false"`, disconnected+`"true"`,
		).Replace(string(text)),
	})
	for _, part := range [][2]string{
		{kustomizationFile, "  newName: r/me/nginx-operator\n  digest: " + digestOf(tagged) + "\n"},
		{"config/manager/manager.yaml", "value: " + mirrored + "\n"},
		{chartDir + "/values.yaml", "  digest: " + digestOf(tagged) + "\n"},
		{chartDir + "/values.yaml", "    image: " + byDigest(exporter) + "\n"},
		{"examples/config/manager/kustomization.yaml", "newName: r/me/"},
	} {
		got, err := os.ReadFile(externalDir + "/" + part[0])
		if err != nil || !strings.Contains(string(got), part[1]) {
			t.Errorf("%s does not have %q (%v): %s", part[0], part[1], err, got)
		}
	}
	bundle := byDigest(p.image("bundle", p.version))
	images, err := p.pulled()
	wantImages := []string{p.image("catalog", p.version), bundle, byDigest(exporter), operator, byDigest(receiverImage), mirrored}
	if diff := cmp.Diff(wantImages, images); diff != "" || err != nil {
		t.Errorf("the images that a cluster pulls: %v\n%s", err, diff)
	}
	do(t, "image", "catalog")
	rendered, err := os.ReadFile(externalDir + "/" + bundlesDir + "/v" + p.version + ".yaml")
	if err != nil || !strings.Contains(string(rendered), "--alpha-image-ref-template="+bundle+"\n") {
		t.Errorf("the catalog does not have %s: %s (%v)", bundle, rendered, err)
	}
	if err := p.nameImagesByDigest(externalDir); err == nil {
		t.Error("a bundle without the text to replace is accepted")
	}
}
