package e2e

// Upgrades through OLM: from the newest published release to this one, and then to the same code
// under the next version. If the graph leads to this release from another one, also from that one.
//
// Invariants during each step:
//
//   - The Pods of the operands stay the same, or roll once if the release has another default
//     image. A client that loads an operand through its Service sees no failed request.
//   - Clients that read 50 times per second, each object in turn and occasionally all of them, see
//     no wrong response, at v1alpha1 and at v1alpha2: each object exists with its port. Reads fail
//     only in one gap of less than 100 ms. In the step that introduces v1alpha2, this applies to
//     v1alpha2 after OLM reports that the release is installed.
//   - Writes succeed at each existing version, and objects created during the step are correct at
//     either version.
//   - OLM rolls out the operator once, not twice: the webhook certificate outlives the previous
//     release.
//   - The release that stores v1alpha2 has migrated every object, as etcd shows, and OLM was
//     blocked until then.
//
// graph_test.go walks the whole graph.

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// fewObjects is the number of objects without Pods during an upgrade.
const fewObjects = 50

func TestUpgrade(t *testing.T) {
	t.Parallel() // together with tests that do not use the operator
	t.Run("from "+suite.published.version, func(t *testing.T) { testUpgrade(t, testFromPublished) })
	if suite.previous.version != suite.published.version {
		t.Run("from "+suite.previous.version, func(t *testing.T) {
			testUpgrade(t, func(t *testing.T, operator string) { testFrom(t, operator, suite.previous) })
		})
	}
}

// testUpgrade runs one way to upgrade the operator, on a clean cluster and in a new namespace.
func testUpgrade(t *testing.T, test func(t *testing.T, operator string)) {
	test(t, startIn(t, restricted))
}

// testFromPublished upgrades the newest release before this one. It installs that release as users
// did: from its own catalog, in the channel that is deprecated now. OLM upgrades automatically when
// the image of the CatalogSource changes, as for users of OperatorHub. The next release waits for
// an approval and for the storage migration.
func testFromPublished(t *testing.T, operator string) {
	from := suite.published
	subscribe(t, operator, from.catalogImage, "alpha", "Automatic", from.version)
	arrive(t, operator, "Automatic", from.version)
	fleet := newFleet(t, fewObjects)
	before, err := revision(t.Context(), operator)
	must(t, err)
	fleet.upgradeAutomatically(t, operator, from)
	waitForDeprecation(t, operator, "ChannelDeprecated", "The channel alpha is now named candidate")
	fleet.blocked(t, operator)
	keepsManifest(t, operator)
	installedInOrder(t, operator, from, suite.current, suite.next)
	rolledOutOnce(t, operator, before, 2)
}

// testFrom starts at a release and approves each step to this release by hand. The catalog is that
// of this release.
func testFrom(t *testing.T, operator string, from release) {
	subscribe(t, operator, suite.catalogImage, "candidate", "Manual", from.version)
	arrive(t, operator, "Manual", from.version)
	newFleet(t, fewObjects).walk(t, operator, from, suite.current)
}

// upgradeAutomatically makes OLM upgrade from a release to this one, by the change to the catalog
// of this release. Later steps need an approval.
func (f *fleet) upgradeAutomatically(t *testing.T, operator string, from release) {
	t.Helper()
	setApproval(t, operator, "Automatic")
	f.step(t, "from "+from.version+" to "+suite.version+", automatic", from, func(func()) {
		offer(t, operator, suite.catalogImage)
		arrive(t, operator, "Automatic", suite.version)
	})
	storageMigratedAlready(t, f.namespace)
	setApproval(t, operator, "Manual")
}

// walk upgrades from one release to another, one step of the graph after another.
func (f *fleet) walk(t *testing.T, operator string, from, last release) {
	t.Helper()
	before, err := revision(t.Context(), operator)
	must(t, err)
	steps := 0
	for from, to := range walked(from, last) {
		f.step(t, "from "+from.version+" to "+to.version+", manual", from, func(introduced func()) {
			arrive(t, operator, "Manual", to.version)
			introduced()
			if from.stored != to.stored {
				storageMigrated(t, operator, f.namespace, csvNameOf(to.version), false)
			}
		})
		if !from.converts() {
			f.useNewFields(t)
		}
		steps++
	}
	rolledOutOnce(t, operator, before, steps)
	storageMigratedAlready(t, f.namespace)
}

// revision returns the number of rollouts of the operator's Deployment. OLM retains only the newest
// ReplicaSets, but numbers continue.
func revision(ctx context.Context, operator string) (int, error) {
	sets := &appsv1.ReplicaSetList{}
	if err := suite.admin.List(ctx, sets, client.InNamespace(operator)); err != nil {
		return 0, err
	}
	newest := 0
	for i := range sets.Items {
		number, err := strconv.Atoi(sets.Items[i].Annotations["deployment.kubernetes.io/revision"])
		if err != nil {
			return 0, fmt.Errorf("failed to read the revision of ReplicaSet %s: %w", sets.Items[i].Name, err)
		}
		newest = max(newest, number)
	}
	return newest, nil
}

// rolledOutOnce requires that the operator has rolled out once for each release since a revision.
// OLM starts a second rollout if it has to create another certificate, which it does within seconds
// after it has deleted the previous release.
func rolledOutOnce(t *testing.T, operator string, before, releases int) {
	t.Helper()
	holds(t, operator, "rollouts of the operator", 8*time.Second, func(ctx context.Context) error {
		now, err := revision(ctx, operator)
		if err == nil && now != before+releases {
			err = fmt.Errorf("%d releases caused %d rollouts", releases, now-before)
		}
		return err
	})
}

// keepsManifest requires that the ConfigMap with the storage migration outlived the previous
// release.
func keepsManifest(t *testing.T, operator string) {
	t.Helper()
	must(t, suite.admin.Get(t.Context(), client.ObjectKey{Namespace: operator, Name: "nginx-operator-storage-migration"}, &corev1.ConfigMap{}))
}

// storageMigratedAlready requires that no object is left to migrate.
func storageMigratedAlready(t *testing.T, namespace string) {
	t.Helper()
	crd, err := readCRD(t.Context())
	must(t, err)
	if stored := crd.Status.StoredVersions; !slices.Equal(stored, []string{newer}) {
		t.Errorf("status.storedVersions is %v", stored)
	}
	must(t, allStoredAs(t.Context(), namespace, newer))
}
