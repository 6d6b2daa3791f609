package e2e

// A release that does not have the stored version. OLM refuses it and reports why, and nothing
// changes.

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/api/equality"
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
}
