package e2e

// Upgrades with OLM v1 and its default check of CRDs, which refuses changed rules: from each
// release before this one, with the commands of docs/guide/olm-v1.md if the upgrade changes rules,
// and then to the next release without them.
//
//   - OLM v1 refuses the upgrade that changes rules, and the former release keeps running.
//   - The commands install the release. After them, the check is on again.
//   - No read and no request fails, and no Pod changes, as with OLM v0.

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// changesRules are the upgrades that OLM v1 refuses (hack/release/preflight.go). Every other
// upgrade must pass without the commands.
var changesRules = [][2]string{{"0.6.0", "0.7.1"}, {"0.7.0", "0.7.1"}}

func testUpgradesUnderOLMv1(t *testing.T) {
	from := []release{suite.previous, suite.published}
	if suite.previous.version == suite.published.version {
		from = from[:1]
	}
	for _, r := range from {
		t.Run("from "+r.version, func(t *testing.T) { testUpgradeUnderOLMv1(t, r) })
	}
}

func testUpgradeUnderOLMv1(t *testing.T, from release) {
	operator := startIn(t, restricted)
	removeExtensionAtEnd(t)
	current, next := suite.current, suite.next

	// The catalog of this release has the earlier ones too.
	applyExtension(t, operator, current.catalogImage, from.version)
	waitForExtension(t, operator, from.version)
	fleet := newFleet(t, fewObjects)
	fleet.step(t, "from "+from.version+" to "+current.version+", OLM v1", from, func(func()) {
		applyExtension(t, operator, current.catalogImage, current.version)
		if slices.Contains(changesRules, [2]string{from.version, current.version}) {
			refusesRules(t, operator, from)
			out, err := documentedIn(t, "guide/olm-v1.md", "Upgrades that change rules", suite.delivery, strings.NewReplacer())
			t.Logf("the documented commands: %s", out)
			must(t, err)
		}
		waitForExtension(t, operator, current.version)
		logExtension(t, current.version+" is installed")
	})
	fleet.step(t, "from "+current.version+" to "+next.version+", OLM v1", current, func(func()) {
		extend(t, operator, next)
		logExtension(t, next.version+" is installed")
	})
	fleet.useNewFields(t)
}

// refusesRules waits until OLM v1 refuses the CRD of this release, and requires that the former
// release keeps running.
func refusesRules(t *testing.T, operator string, from release) {
	t.Helper()
	took := waitFor(t, operator, "OLM v1 to refuse the CRD", patience, func(ctx context.Context) error {
		_, said, err := readExtension(ctx)
		if err == nil && !strings.Contains(said, `validating upgrade for CRD "`+crdName+`"`) {
			err = fmt.Errorf("the conditions are %s", said)
		}
		return err
	})
	t.Logf("FIGURE OLM v1 refuses the CRD after %s", seconds(took))
	logExtension(t, "OLM v1 refuses the CRD")
	holds(t, operator, "the release before", 5*time.Second, func(ctx context.Context) error {
		if err := extendedTo(ctx, from.version); err != nil {
			return err
		}
		return replicasRun(ctx, operator, from.version)
	})
}

// logExtension logs the conditions of the ClusterExtension, which explain a failure.
func logExtension(t *testing.T, when string) {
	t.Helper()
	is, said, err := readExtension(t.Context())
	t.Logf("%s. ClusterExtension: release %q, error %v, conditions %.2000s", when, is, err, said)
}
