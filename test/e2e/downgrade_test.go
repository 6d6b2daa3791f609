package e2e

// The downgrade, only in the full run. A downgrade is supported to the last release that stores
// v1alpha1, because that release also has v1alpha2. The operator is uninstalled, the objects stay,
// and the older release is installed. It stores each object at v1alpha1 on its next write, and
// reads both versions.
//
//   - Objects are unchanged, operands get the image of the older release, and no request is lost.
//   - Fields of the new release that v1alpha1 does not have are retained.
//   - OLM refuses a release without v1alpha2 and reports why, and nothing changes.

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// refusals matches OLM's messages about a release that does not have the stored version. Before OLM
// compares the versions, it reads all objects at v1alpha1. Without an operator, that read works
// only as long as the API server still has the converted objects.
var refusals = regexp.MustCompile(`risk of data loss updating|error validating existing CRs against new CRD's schema`)

// testTooFarBack uninstalls the operator, requests the first release, and requires that OLM refuses
// it.
func testTooFarBack(t *testing.T, operator string) {
	t.Helper()
	before, err := readCRD(t.Context())
	must(t, err)
	uninstall(t, operator)
	subscribe(t, operator, suite.catalogImage, "stable", "Manual", suite.first.version)
	waitFor(t, operator, "OLM to refuse the first release", installPatience, func(ctx context.Context) error {
		if err := approve(ctx, operator, suite.first.version); err != nil {
			return err
		}
		plans, err := installPlans(ctx, operator)
		if err != nil {
			return err
		}
		var all []string
		for i := range plans {
			said := text(&plans[i], "status", "message")
			if refusals.MatchString(said) {
				t.Logf("OLM refuses: %s", said)
				return nil
			}
			all = append(all, fmt.Sprintf("%s is %s: %s", plans[i].GetName(), text(&plans[i], "status", "phase"), said))
		}
		return fmt.Errorf("no InstallPlan says so: %v", all)
	})
	now, err := readCRD(t.Context())
	must(t, err)
	if !equality.Semantic.DeepEqual(now.Spec.Versions, before.Spec.Versions) ||
		!slices.Equal(now.Status.StoredVersions, before.Status.StoredVersions) {
		t.Errorf("the versions of the CRD were changed, status.storedVersions is %v", now.Status.StoredVersions)
	}
	must(t, suite.admin.Delete(t.Context(), olmObject("Subscription", operator, packageName)))
	csv := olmObject("ClusterServiceVersion", operator, csvNameOf(suite.first.version))
	must(t, client.IgnoreNotFound(suite.admin.Delete(t.Context(), csv)))
}

// back installs the last release that stores v1alpha1, and requires that nothing is lost.
func (f *fleet) back(t *testing.T, operator string) {
	t.Helper()
	load := startLoad(t, f.namespace, suite.reach.service(f.namespace, "web", 8080))
	// Without an operator, the stored version can be read.
	must(t, f.asCreated(t.Context(), newer))
	began := time.Now()
	subscribe(t, operator, suite.catalogImage, "stable", "Manual", suite.unmigrated.version)
	arrive(t, operator, "Manual", suite.unmigrated.version)
	t.Logf("FIGURE step back to %s: %s", suite.unmigrated.version, seconds(time.Since(began)))
	waitFor(t, f.namespace, "both versions to be readable", patience, func(ctx context.Context) error {
		return errors.Join(f.asCreated(ctx, older), f.asCreated(ctx, newer))
	})
	waitForReady(t, f.web)
	f.settles(t, "on the way back")
	answers(t, f.namespace, suite.reach.service(f.namespace, "web", 8081), "the second port")

	crd, err := readCRD(t.Context())
	must(t, err)
	if stored := slices.Sorted(slices.Values(crd.Status.StoredVersions)); !slices.Equal(stored, []string{older, newer}) {
		t.Errorf("status.storedVersions is %v", stored)
	}
	// A write stores the object at the storage version of that release.
	touched := newV1alpha1(f.namespace, refusedName, 0, 0)
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"touched":"yes"}}}`))
	must(t, suite.admin.Patch(t.Context(), touched, patch))
	if suite.local {
		counts, err := storedAs(t.Context(), f.namespace)
		must(t, err)
		t.Logf("FIGURE objects in etcd after the step back: %v", counts)
		if counts[older] == 0 {
			t.Error("nothing is stored as that release stores it")
		}
	}
	load.finish(t, f.namespace, "load on the way back")
}
