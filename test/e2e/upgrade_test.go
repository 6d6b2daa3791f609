package e2e

// Upgrades through OLM: from the first release through each release in between to this one, and
// then to the same code under the next version. Also the one supported step back.
//
// Invariants during each step:
//
//   - The Pods of the operands stay the same, or roll once if the release has another default
//     image. A client that loads an operand through its Service sees no failed request.
//   - A client that reads 50 times per second, each object in turn and occasionally all of them,
//     sees no wrong response, at v1alpha1 and at v1alpha2: each object exists with its port. Reads
//     fail only in one gap of less than 100 ms. In the step that introduces v1alpha2, this applies
//     to v1alpha2 after OLM reports that the release is installed.
//   - Writes succeed at each existing version, and objects created during the step are correct at
//     either version.
//   - OLM rolls out the operator once, not twice: the webhook certificate outlives the previous
//     release.
//   - The release that stores v1alpha2 has migrated every object, as etcd shows, and OLM was
//     blocked until then.
//
// Each InstallPlan up to the predecessor in the graph is approved by hand. The last step is
// automatic: only the image of the CatalogSource changes, as for users of OperatorHub. The newest
// published release is upgraded in the same way. A full run also upgrades the first release with
// the catalog of this release, and OLM installs each release in between. It also starts at each
// skipped release.

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/test/harness"
)

const (
	// manyObjects is the number of objects in the automatic upgrade of a full run. fewObjects is
	// the number in all other tests.
	manyObjects = 300
	fewObjects  = 50
)

func TestUpgrade(t *testing.T) {
	t.Parallel() // together with TestExamples
	t.Run("graph", func(t *testing.T) { testUpgrade(t, testGraph) })
	t.Run("from "+suite.published.version, func(t *testing.T) { testUpgrade(t, testFromPublished) })
	if !suite.full {
		return
	}
	t.Run("automatic", func(t *testing.T) { testUpgrade(t, testAutomatic) })
	for _, from := range suite.releases {
		if from.skipped && from.version != suite.published.version {
			t.Run("from "+from.version, func(t *testing.T) {
				testUpgrade(t, func(t *testing.T, operator string) { testFromSkipped(t, operator, from) })
			})
		}
	}
}

// testUpgrade runs one way to upgrade the operator, on a clean cluster and in a new namespace.
func testUpgrade(t *testing.T, test func(t *testing.T, operator string)) {
	startClean(t)
	operator := newNamespace(t, restricted)
	suite.operatorNamespace = operator
	defer func() { suite.operatorNamespace = "" }()
	test(t, operator)
}

// subscribe creates a catalog and a Subscription to one of its channels, which starts at a release.
func subscribe(t *testing.T, operator, catalogImage, channel, approval, version string) {
	t.Helper()
	applyText(t, strings.NewReplacer("NAMESPACE", operator, "CATALOG_IMAGE", catalogImage).Replace(harness.CatalogManifest))
	applyText(t, strings.NewReplacer("NAMESPACE", operator, "channel: stable", "channel: "+channel,
		"installPlanApproval: Automatic", "installPlanApproval: "+approval+"\n  startingCSV: "+csvNameOf(version),
	).Replace(harness.SubscriptionManifest))
}

// offer changes the image of the CatalogSource.
func offer(t *testing.T, operator, image string) {
	t.Helper()
	update(t, olmObject("CatalogSource", operator, catalogName), func(catalog *unstructured.Unstructured) {
		must(t, unstructured.SetNestedField(catalog.Object, image, "spec", "image"))
	})
}

// setApproval sets the approval of InstallPlans to Automatic or Manual.
func setApproval(t *testing.T, operator, approval string) {
	t.Helper()
	update(t, olmObject("Subscription", operator, packageName), func(subscription *unstructured.Unstructured) {
		must(t, unstructured.SetNestedField(subscription.Object, approval, "spec", "installPlanApproval"))
	})
}

// testGraph walks the graph from the first release to the next one.
func testGraph(t *testing.T, operator string) {
	subscribe(t, operator, suite.previous.catalogImage, "stable", "Manual", suite.first.version)
	arrive(t, operator, "Manual", suite.first.version)
	waitForDeprecation(t, operator, "BundleDeprecated", csvNameOf(suite.first.version)+" has the API v1alpha1 only")
	fleet := newFleet(t, fewObjects)
	releases := suite.first.andAfter()
	fleet.walk(t, operator, suite.first, suite.previous)
	installedInOrder(t, operator, releases[:len(releases)-1]...)
	fleet.upgradeAutomatically(t, operator)
	installedInOrder(t, operator, releases...)
	keepsManifest(t, operator)
	if suite.full {
		testTooFarBack(t, operator)
		fleet.back(t, operator)
		fleet.walk(t, operator, suite.unmigrated, suite.current)
	}
	fleet.blocked(t, operator)
}

// upgradeAutomatically makes OLM upgrade from the previous release to this one, after the catalog
// has changed to the catalog of this release.
func (f *fleet) upgradeAutomatically(t *testing.T, operator string) {
	t.Helper()
	setApproval(t, operator, "Automatic")
	f.step(t, "from "+suite.previous.version+" to "+suite.version+", automatic", suite.previous, func(func()) {
		offer(t, operator, suite.catalogImage)
		rolledOutOnce(t, operator, suite.version, arrive(t, operator, "Automatic", suite.version))
	})
	storageMigratedAlready(t, f.namespace)
	setApproval(t, operator, "Manual")
}

// testAutomatic makes OLM upgrade from the first release to this one, and then to the next one.
func testAutomatic(t *testing.T, operator string) {
	first := suite.first
	subscribe(t, operator, first.catalogImage, "alpha", "Automatic", first.version)
	arrive(t, operator, "Automatic", first.version)
	fleet := newFleet(t, manyObjects)

	fleet.step(t, "from "+first.version+" to "+suite.version+", automatic", first, func(introduced func()) {
		offer(t, operator, suite.catalogImage)
		var installed time.Time
		for from, to := range walked(first, suite.current) {
			// OLM continues as soon as a release is installed, so a later release may already be
			// installed.
			waitFor(t, operator, "release "+to.version, installPatience, resolving(operator, func(ctx context.Context) error {
				return reached(ctx, operator, to)
			}))
			installed = time.Now()
			introduced()
			if from.stored != to.stored {
				storageMigrated(t, operator, fleet.namespace, csvNameOf(to.version))
			}
		}
		arrive(t, operator, "Automatic", suite.version)
		rolledOutOnce(t, operator, suite.version, installed)
	})
	installedInOrder(t, operator, first.andAfter()...)
	fleet.useNewFields(t)

	fleet.step(t, "from "+suite.version+" to "+suite.next.version+", automatic", suite.next, func(func()) {
		offer(t, operator, suite.next.catalogImage)
		rolledOutOnce(t, operator, suite.next.version, arrive(t, operator, "Automatic", suite.next.version))
	})
	keepsManifest(t, operator)
	storageMigratedAlready(t, fleet.namespace)
}

// testFromSkipped starts at a release to which the graph no longer leads.
func testFromSkipped(t *testing.T, operator string, from release) {
	subscribe(t, operator, suite.catalogImage, "candidate", "Manual", from.version)
	arrive(t, operator, "Manual", from.version)
	newFleet(t, fewObjects).walk(t, operator, from, suite.current)
}

// testFromPublished upgrades the newest release before this one. It installs that release as users
// did: from its own catalog, in the only channel that contained it. OLM reports that this channel
// is deprecated.
func testFromPublished(t *testing.T, operator string) {
	from := suite.published
	subscribe(t, operator, from.catalogImage, "alpha", "Automatic", from.version)
	arrive(t, operator, "Automatic", from.version)
	fleet := newFleet(t, fewObjects)
	fleet.step(t, "from "+from.version+" to "+suite.version+", automatic", from, func(func()) {
		offer(t, operator, suite.catalogImage)
		rolledOutOnce(t, operator, suite.version, arrive(t, operator, "Automatic", suite.version))
	})
	waitForDeprecation(t, operator, "ChannelDeprecated", "The channel alpha is now named candidate")
	storageMigratedAlready(t, fleet.namespace)
}

// walked returns the steps of the graph from one release to another.
func walked(from, last release) iter.Seq2[release, release] {
	return func(yield func(from, to release) bool) {
		for _, to := range from.after() {
			if from.version == last.version || !yield(from, to) {
				return
			}
			from = to
		}
	}
}

// walk upgrades from one release to another, one step of the graph after another.
func (f *fleet) walk(t *testing.T, operator string, from, last release) {
	t.Helper()
	for from, to := range walked(from, last) {
		f.step(t, "from "+from.version+" to "+to.version+", manual", from, func(introduced func()) {
			installed := arrive(t, operator, "Manual", to.version)
			introduced()
			if from.stored != to.stored {
				storageMigrated(t, operator, f.namespace, csvNameOf(to.version))
			}
			rolledOutOnce(t, operator, to.version, installed)
		})
		if !from.converts() {
			f.useNewFields(t)
		}
	}
	storageMigratedAlready(t, f.namespace)
}

// reached returns an error unless OLM has installed a release or a later one.
func reached(ctx context.Context, operator string, r release) error {
	err := succeeded(ctx, operator, r.version)
	for _, later := range r.after() {
		if err != nil && succeeded(ctx, operator, later.version) == nil {
			return nil
		}
	}
	return err
}

// startClean removes what the previous test left, including the CRD.
func startClean(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	must(t, cleanBesideExamples(ctx))
}

// resolveInterval is how often resolving makes OLM reconcile the Subscription. A resolution fails
// if it finds the previous release during its deletion. OLM then retries only at the next event in
// the namespace, or after 15 minutes.
const resolveInterval = 4 * time.Second

// resolving wraps a check so that its repetition also makes OLM reconcile the Subscription.
func resolving(operator string, check func(context.Context) error) func(context.Context) error {
	looked := time.Now()
	return func(ctx context.Context) error {
		if time.Since(looked) > resolveInterval {
			looked = time.Now()
			patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"example.com/looked-at":%q}}}`, looked.Format(time.RFC3339))
			err := suite.admin.Patch(ctx, olmObject("Subscription", operator, packageName), client.RawPatch(types.MergePatchType, patch))
			if err != nil {
				return err
			}
		}
		return check(ctx)
	}
}

// arrive waits until a release is installed and OLM has finished its InstallPlans. It approves
// InstallPlans if approval is Manual, and returns the time of the installation.
//
// After a conflict, OLM may create a second InstallPlan for a release, so arrive approves until the
// release is installed. OLM may also retry an InstallPlan whose release already runs. If the next
// InstallPlan is approved then, OLM writes the CRDs of both releases in any order.
func arrive(t *testing.T, operator, approval, version string) time.Time {
	t.Helper()
	began := time.Now()
	waitFor(t, operator, "release "+version, installPatience, resolving(operator, func(ctx context.Context) error {
		if approval == "Manual" {
			if err := approve(ctx, operator, version); err != nil {
				return err
			}
		}
		return errors.Join(succeeded(ctx, operator, version), nothingInstalling(ctx, operator))
	}))
	installed := time.Now()
	t.Logf("FIGURE release %s is installed after %s", version, seconds(installed.Sub(began)))
	return installed
}

// installPlans returns the InstallPlans in the operator's namespace.
func installPlans(ctx context.Context, operator string) ([]unstructured.Unstructured, error) {
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion("operators.coreos.com/v1alpha1")
	list.SetKind("InstallPlanList")
	err := suite.admin.List(ctx, list, client.InNamespace(operator))
	return list.Items, err
}

// nothingInstalling returns an error while OLM is still executing an approved InstallPlan.
func nothingInstalling(ctx context.Context, operator string) error {
	plans, err := installPlans(ctx, operator)
	if err != nil {
		return err
	}
	for i := range plans {
		if text(&plans[i], "status", "phase") == "Installing" {
			return fmt.Errorf("%s is still being installed: %s", plans[i].GetName(), text(&plans[i], "status", "message"))
		}
	}
	return nil
}

// approvalDelay is the minimum age of an InstallPlan at its approval. OLM writes a new InstallPlan
// a second time, and an earlier approval makes OLM start again.
const approvalDelay = 3 * time.Second

// approve approves the InstallPlans of a release that require approval and are older than
// approvalDelay.
func approve(ctx context.Context, operator, version string) error {
	plans, err := installPlans(ctx, operator)
	if err != nil {
		return err
	}
	for i := range plans {
		plan := &plans[i]
		names, _, _ := unstructured.NestedStringSlice(plan.Object, "spec", "clusterServiceVersionNames")
		approved, _, _ := unstructured.NestedBool(plan.Object, "spec", "approved")
		waits := text(plan, "status", "phase") == "RequiresApproval" && time.Since(plan.GetCreationTimestamp().Time) > approvalDelay
		if approved || !waits || !slices.Contains(names, csvNameOf(version)) {
			continue
		}
		before := plan.DeepCopy()
		if err := unstructured.SetNestedField(plan.Object, true, "spec", "approved"); err != nil {
			return err
		}
		if err := suite.admin.Patch(ctx, plan, client.MergeFrom(before)); err != nil {
			return err
		}
	}
	return nil
}

// onlyOneRelease returns an error while a namespace has more than one ClusterServiceVersion. It
// returns nil if OLM v0 is not installed.
func onlyOneRelease(ctx context.Context, operator string) error {
	list := metadataList("operators.coreos.com/v1alpha1", "ClusterServiceVersionList")
	if err := ignoreNoMatch(suite.admin.List(ctx, list, client.InNamespace(operator))); err != nil || len(list.Items) > 1 {
		return errors.Join(err, fmt.Errorf("there are %d ClusterServiceVersions", len(list.Items)))
	}
	return nil
}

// rolledOutOnce requires that a release has only one revision of the operator's Deployment, and
// that both replicas are ready. OLM creates a second revision if it has to create another
// certificate.
func rolledOutOnce(t *testing.T, operator, version string, installed time.Time) {
	t.Helper()
	image := ":v" + version
	waitFor(t, operator, "both replicas of the operator", installPatience, func(ctx context.Context) error {
		return operatorRolledOut(ctx, operator)
	})
	// If OLM deletes the certificate with the previous release, it does so within seconds. The
	// ReplicaSet of a second revision remains, so this check finds it later as well.
	holdsUntil(t, operator, "a second rollout of the operator", installed.Add(8*time.Second), func(ctx context.Context) error {
		sets := &appsv1.ReplicaSetList{}
		if err := suite.admin.List(ctx, sets, client.InNamespace(operator)); err != nil {
			return err
		}
		revisions := slices.DeleteFunc(sets.Items, func(set appsv1.ReplicaSet) bool {
			return !strings.HasSuffix(set.Spec.Template.Spec.Containers[0].Image, image)
		})
		if len(revisions) != 1 {
			return fmt.Errorf("release %s has %d revisions", version, len(revisions))
		}
		return succeeded(ctx, operator, version)
	})
}

// retainedPlans is the number of InstallPlans that OLM retains. It deletes older ones
// (maxInstallPlanCount).
const retainedPlans = 5

// installedInOrder requires that OLM created InstallPlans for exactly these releases, in this
// order. If OLM has deleted InstallPlans, they are those of the first releases.
func installedInOrder(t *testing.T, operator string, releases ...release) {
	t.Helper()
	plans, err := installPlans(t.Context(), operator)
	must(t, err)
	slices.SortFunc(plans, func(a, b unstructured.Unstructured) int {
		generation := func(plan unstructured.Unstructured) int64 {
			n, _, _ := unstructured.NestedInt64(plan.Object, "spec", "generation")
			return n
		}
		return int(generation(a) - generation(b))
	})
	var installed []string
	for i := range plans {
		names, _, _ := unstructured.NestedStringSlice(plans[i].Object, "spec", "clusterServiceVersionNames")
		installed = append(installed, strings.Join(names, "+"))
	}
	var want []string
	for _, r := range releases {
		want = append(want, csvNameOf(r.version))
	}
	got := slices.Compact(installed) // OLM may create a second InstallPlan for a release after a conflict
	if len(plans) >= retainedPlans {
		want = want[max(0, len(want)-len(got)):]
	}
	if !slices.Equal(got, want) {
		t.Errorf("OLM installed %v instead of %v", got, want)
	}
}

// waitForDeprecation waits until OLM reports a deprecation on the Subscription.
func waitForDeprecation(t *testing.T, operator, conditionType, message string) {
	t.Helper()
	waitFor(t, operator, "the Subscription's condition "+conditionType, patience, func(ctx context.Context) error {
		subscription := olmObject("Subscription", operator, packageName)
		if err := suite.admin.Get(ctx, client.ObjectKeyFromObject(subscription), subscription); err != nil {
			return err
		}
		conditions, _, _ := unstructured.NestedSlice(subscription.Object, "status", "conditions")
		for _, condition := range conditions {
			condition := &unstructured.Unstructured{Object: condition.(map[string]any)}
			if text(condition, "type") == conditionType && text(condition, "status") == "True" &&
				strings.Contains(text(condition, "message"), message) {
				return nil
			}
		}
		return fmt.Errorf("it has the conditions %v", conditions)
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
