package e2e

// Upgrades that arrive because OLM polls a tag of the catalog: the tag moves, and nobody changes
// the CatalogSource or the Subscription.

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/docs"
	"github.com/example/nginx-operator/test/harness"
)

const (
	// polledTag is the tag that these tests move. docs/install.md polls latest, which belongs to
	// the user of the registry.
	polledTag = "e2e-polled"
	// catalogInterval is that of these tests. docs/install.md has documentedInterval.
	catalogInterval, documentedInterval = "interval: 20s", "interval: 15m"
	catalogOfRelease                    = "ghcr.io/example/nginx-operator-catalog:"
)

// TestPolledCatalog subscribes as docs/install.md describes, with another tag and interval.
func TestPolledCatalog(t *testing.T) {
	operator := startIn(t, restricted)
	image := movePolledTag(t, suite.current)
	group, _, _ := strings.Cut(harness.CatalogManifest, "kind: CatalogSource")
	applyText(t, strings.ReplaceAll(group[:strings.LastIndex(group, "---")], "NAMESPACE", operator))
	applyText(t, documentedSubscription(t, operator, image))
	waitForInstall(t, operator)
	instance := newInstance(t, newNamespace(t, restricted), "web", 1)
	pods, before := uidsOf(t, instance), olmGenerations(t, operator)

	began := time.Now()
	movePolledTag(t, suite.next)
	arrive(t, operator, "Automatic", suite.next.version)
	t.Logf("FIGURE release %s is installed %s after the tag moved, %s", suite.next.version, seconds(time.Since(began)), catalogInterval)
	if diff := cmp.Diff(before, olmGenerations(t, operator)); diff != "" {
		t.Errorf("the spec of these objects changed: %s", diff)
	}
	if diff := cmp.Diff(pods, uidsOf(t, instance)); diff != "" {
		t.Errorf("the instance has other Pods: %s", diff)
	}
}

// olmGenerations returns the generations of the CatalogSource and the Subscription of
// docs/install.md.
func olmGenerations(t *testing.T, operator string) map[string]int64 {
	t.Helper()
	generations := map[string]int64{}
	for _, kind := range []string{"CatalogSource", "Subscription"} {
		object := olmObject(kind, operator, packageName)
		must(t, suite.admin.Get(t.Context(), client.ObjectKeyFromObject(object), object))
		generations[kind] = object.GetGeneration()
	}
	return generations
}

// movePolledTag makes the tag refer to the catalog of a release, as `make catalog-latest` does with
// the tag latest. It returns the image with the tag.
func movePolledTag(t *testing.T, r release) string {
	t.Helper()
	var registry []string
	if suite.local {
		registry = []string{"-registry=" + os.Getenv("IMAGE_REGISTRY")}
	}
	arguments := append(append([]string{"tag"}, registry...), r.catalogImage, polledTag)
	_, err := command(t.Context(), filepath.Join(suite.repository, "bin", "oci"), arguments...)
	must(t, err)
	return strings.TrimSuffix(r.catalogImage, ":v"+r.version) + ":" + polledTag
}

// documentedSubscription returns the manifests of docs/install.md, with the operator's namespace,
// an image of the catalog, and a short interval.
func documentedSubscription(t *testing.T, operator, image string) string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(suite.repository, "docs", "install.md"))
	must(t, err)
	manifests, err := docs.Manifests(string(page), "OLM: a Subscription")
	must(t, err)
	for _, old := range []string{
		"namespace: olm\n", "namespace: operators\n", "sourceNamespace: olm\n", catalogOfRelease + "latest\n", documentedInterval,
	} {
		if !strings.Contains(manifests, old) {
			t.Fatalf("docs/install.md does not have %q:\n%s", old, manifests)
		}
	}
	return strings.NewReplacer(
		"sourceNamespace: olm\n", "sourceNamespace: "+operator+"\n", "namespace: olm\n", "namespace: "+operator+"\n",
		"namespace: operators\n", "namespace: "+operator+"\n", catalogOfRelease+"latest\n", image+"\n", documentedInterval, catalogInterval,
	).Replace(manifests)
}
