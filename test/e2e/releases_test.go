package e2e

// The releases and their API versions, which come from the bundles. A new release needs no change
// here.

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// release is a release with the images that install it. delivery is the directory with its config
// and bundle.
type release struct {
	version, delivery, catalogImage, bundleImage string
	// served are the API versions that the release serves. stored is its storage version.
	served []string
	stored string
	// skipped means that the graph leads from this release, but not to it.
	skipped bool
}

// readReleases sets the releases of the suite.
func readReleases(env func(string) string) error {
	images, before := env("IMAGES"), strings.Fields(env("OLDER_VERSIONS"))
	read := func(version, delivery string) (release, error) {
		r := release{
			version: version, delivery: delivery, catalogImage: images + "-catalog:v" + version,
			bundleImage: images + "-bundle:v" + version,
		}
		return r, r.readAPI()
	}
	var errs []error
	for _, version := range before {
		r, err := read(version, filepath.Join(env("OLDER_DELIVERIES"), "v"+version))
		suite.releases, errs = append(suite.releases, r), append(errs, err)
	}
	current, err := read(suite.version, suite.delivery)
	current.catalogImage, current.bundleImage = suite.catalogImage, suite.bundleImage
	suite.releases = append(suite.releases, current)
	errs = append(errs, readCatalog())
	next, nextErr := read(env("NEXT_VERSION"), env("NEXT_DELIVERY"))
	suite.next = next
	if err := errors.Join(append(errs, err, nextErr)...); err != nil {
		return err
	}
	suite.first, suite.published, suite.current = suite.releases[0], suite.releases[len(before)-1], suite.releases[len(before)]
	for _, r := range suite.releases[:len(before)] {
		if !r.skipped {
			suite.previous = r
		}
	}
	return nil
}

// readCatalog marks the releases that the catalog skips.
func readCatalog() error {
	raw, err := os.ReadFile(filepath.Join(suite.delivery, "catalog", "nginx-operator", "catalog.yaml"))
	if err != nil {
		return fmt.Errorf("failed to read the catalog: %w", err)
	}
	for document := range strings.SplitSeq(string(raw), "\n---\n") {
		var channel struct {
			Schema, Name string
			Entries      []struct {
				Name  string
				Skips []string
			}
		}
		if err := yaml.Unmarshal([]byte(document), &channel); err != nil {
			return fmt.Errorf("failed to decode the catalog: %w", err)
		}
		for _, entry := range channel.Entries {
			for i := range suite.releases {
				suite.releases[i].skipped = suite.releases[i].skipped || slices.Contains(entry.Skips, csvNameOf(suite.releases[i].version))
			}
		}
	}
	return nil
}

// readAPI reads the API versions from the CRD in the bundle.
func (r *release) readAPI() error {
	raw, err := os.ReadFile(filepath.Join(r.delivery, "bundle", "manifests", "operator.example.com_nginxoperators.yaml"))
	if err != nil {
		return fmt.Errorf("failed to read the bundle of release %s: %w", r.version, err)
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.Unmarshal(raw, crd); err != nil {
		return fmt.Errorf("failed to decode the CRD of release %s: %w", r.version, err)
	}
	for _, version := range crd.Spec.Versions {
		if version.Served {
			r.served = append(r.served, version.Name)
		}
		if version.Storage {
			r.stored = version.Name
		}
	}
	return nil
}

// converts reports whether a release serves both API versions.
func (r release) converts() bool { return slices.Contains(r.served, newer) }

// andAfter returns r and the releases to which the graph leads from it.
func (r release) andAfter() []release { return append([]release{r}, r.after()...) }

// after returns the releases to which the graph leads from r, up to the current release.
func (r release) after() []release {
	n := slices.IndexFunc(suite.releases, func(other release) bool { return other.version == r.version })
	return slices.DeleteFunc(slices.Clone(suite.releases[n+1:]), func(other release) bool { return other.skipped })
}
