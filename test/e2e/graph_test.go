package e2e

// The long upgrades through OLM, with the invariants of upgrade_test.go: the walk of the whole
// graph from the first release to this one, the first release with the catalog of this release up
// to the next one, and each release that the graph skips.

import (
	"context"
	"iter"
	"testing"
)

// manyObjects is the number of objects without Pods in TestUpgradeAutomatically.
const manyObjects = 300

// TestUpgradeGraph walks the graph. Each InstallPlan up to the predecessor is approved by hand. The
// step to this release is automatic. OLM does not go back to the first release.
func TestUpgradeGraph(t *testing.T) {
	testUpgrade(t, func(t *testing.T, operator string) {
		subscribe(t, operator, suite.previous.catalogImage, "stable", "Manual", suite.first.version)
		arrive(t, operator, "Manual", suite.first.version)
		waitForDeprecation(t, operator, "BundleDeprecated", csvNameOf(suite.first.version)+" has the API v1alpha1 only")
		fleet := newFleet(t, fewObjects)
		releases := suite.first.andAfter()
		fleet.walk(t, operator, suite.first, suite.previous)
		installedInOrder(t, operator, releases[:len(releases)-1]...)
		fleet.upgradeAutomatically(t, operator, suite.previous)
		installedInOrder(t, operator, releases...)
		keepsManifest(t, operator)
		testTooFarBack(t, operator)
	})
}

// TestUpgradeAutomatically makes OLM upgrade many objects from the first release to this one, and
// then to the next one.
func TestUpgradeAutomatically(t *testing.T) {
	testUpgrade(t, func(t *testing.T, operator string) {
		first := suite.first
		subscribe(t, operator, first.catalogImage, "alpha", "Automatic", first.version)
		arrive(t, operator, "Automatic", first.version)
		fleet := newFleet(t, manyObjects)
		before, err := revision(t.Context(), operator)
		must(t, err)

		fleet.step(t, "from "+first.version+" to "+suite.version+", automatic", first, func(introduced func()) {
			offer(t, operator, suite.catalogImage)
			for from, to := range walked(first, suite.current) {
				// OLM continues as soon as a release is installed, so a later release may already
				// be installed.
				waitFor(t, operator, "release "+to.version, installPatience, resolving(operator, func(ctx context.Context) error {
					return reached(ctx, operator, to)
				}))
				introduced()
				if from.stored != to.stored {
					storageMigrated(t, operator, fleet.namespace, csvNameOf(to.version), len(to.after()) > 0)
				}
			}
			arrive(t, operator, "Automatic", suite.version)
		})
		installedInOrder(t, operator, first.andAfter()...)
		fleet.useNewFields(t)

		fleet.step(t, "from "+suite.version+" to "+suite.next.version+", automatic", suite.next, func(func()) {
			offer(t, operator, suite.next.catalogImage)
			arrive(t, operator, "Automatic", suite.next.version)
		})
		rolledOutOnce(t, operator, before, len(first.andAfter()))
		keepsManifest(t, operator)
		storageMigratedAlready(t, fleet.namespace)
	})
}

// TestUpgradeFromSkipped starts at each release to which the graph no longer leads.
func TestUpgradeFromSkipped(t *testing.T) {
	for _, from := range suite.releases {
		if from.skipped {
			t.Run(from.version, func(t *testing.T) {
				testUpgrade(t, func(t *testing.T, operator string) { testFrom(t, operator, from) })
			})
		}
	}
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
