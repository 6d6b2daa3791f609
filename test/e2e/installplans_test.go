package e2e

// Helpers that subscribe to a catalog, and that approve and wait for the InstallPlans of OLM.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/test/harness"
)

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
			if err := touch(ctx, olmObject("Subscription", operator, packageName)); err != nil {
				return err
			}
		}
		return check(ctx)
	}
}

// touch changes a label, so that controllers reconcile the object now instead of at their next
// retry. An annotation would do more: OLM copies those of a ClusterServiceVersion to the Pod
// template of the operator, so one that arrives while OLM installs the release rolls out the
// operator a second time.
func touch(ctx context.Context, object client.Object) error {
	patch := fmt.Appendf(nil, `{"metadata":{"labels":{"example.com/looked-at":"%d"}}}`, time.Now().UnixNano())
	return suite.admin.Patch(ctx, object, client.RawPatch(types.MergePatchType, patch))
}

// arrive waits until a release is installed and OLM has finished its InstallPlans. It approves
// InstallPlans if approval is Manual.
//
// After a conflict, OLM may create a second InstallPlan for a release, so arrive approves until the
// release is installed. OLM may also retry an InstallPlan whose release already runs. If the next
// InstallPlan is approved then, OLM writes the CRDs of both releases in any order.
func arrive(t *testing.T, operator, approval, version string) {
	t.Helper()
	took := waitFor(t, operator, "release "+version, installPatience, resolving(operator, func(ctx context.Context) error {
		if approval == "Manual" {
			if err := approve(ctx, operator, version); err != nil {
				return err
			}
		}
		return errors.Join(succeeded(ctx, operator, version), nothingInstalling(ctx, operator))
	}))
	t.Logf("FIGURE release %s is installed after %s", version, seconds(took))
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
