package e2e

import (
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/example/nginx-operator/internal/wellknown"
)

// TestDocumentsBesideImages requires an SBOM and a provenance for each image that users install, as
// referrers of the image's digest.
func TestDocumentsBesideImages(t *testing.T) {
	t.Parallel()
	list := []string{"referrers"}
	if suite.local {
		list = append(list, "-registry="+os.Getenv("IMAGE_REGISTRY"))
	}
	for _, image := range []string{os.Getenv("OPERATOR_IMAGE"), suite.bundleImage, suite.catalogImage, receiverImage()} {
		out, err := command(t.Context(), "oci", append(list, image)...)
		must(t, err)
		var types []string
		for line := range strings.Lines(out) {
			mediaType, _, _ := strings.Cut(line, " ")
			types = append(types, mediaType)
		}
		for _, want := range []string{"application/spdx+json", "application/vnd.in-toto+json"} {
			if !slices.Contains(types, want) {
				t.Errorf("%s has %q beside it and no %s", image, types, want)
			}
		}
	}
}

// receiverImage returns the receiver's image in the registry of the cluster.
func receiverImage() string {
	return publishedAt() + "/" + path.Base(wellknown.DefaultRequestMetricsImage)
}
