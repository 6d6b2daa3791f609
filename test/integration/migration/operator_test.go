package migration

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/test/harness"
	"github.com/example/nginx-operator/test/harness/apiserver"
)

// TestMigrationByTheOperator verifies that the operator rewrites the objects itself if the control
// plane has no migrator.
func TestMigrationByTheOperator(t *testing.T) {
	t.Parallel()
	// Since Kubernetes 1.34, the API server can continue a list from its cache for some time after
	// a compaction. Tokens expire there as well, but at no certain time.
	args := append(withoutMigrator(t), [2]string{"feature-gates", "ListFromCacheSnapshot=false"})
	m := startMigration(t, "test/manager-race", args...)
	m.run(t, []migrationTest{
		// This test runs first, so that the others run as if kube-storage-version-migrator was
		// removed from the cluster.
		{"kube-storage-version-migrator", testMigrationByKubeMigrator},
		{"no migrator", testMigrationWithoutMigrator},
		{"the operator is killed", testMigrationByKilledOperator},
		{"continue tokens expire", testMigrationWithExpiredTokens},
	})
	m.hasUsed(t, harness.KubeMigratorPermissions)
}

// withoutMigrator returns the arguments of an API server without the migration API. Before
// Kubernetes 1.37, the API is off by default, and an API server that does not know a version of the
// API refuses the argument.
func withoutMigrator(t *testing.T) [][2]string {
	t.Helper()
	if harness.Must1(apiserver.Version(t.Context()))(t).LessThan(version.MustParseSemantic("1.37.0")) {
		return nil
	}
	return [][2]string{{"runtime-config", "storagemigration.k8s.io/v1=false,storagemigration.k8s.io/v1beta1=false"}}
}

// done returns an error until the migration is complete: etcd contains only v1alpha2, and the CRD
// says so.
func (m *migration) done(t *testing.T) error {
	t.Helper()
	// Check the CRD first, because reading all of etcd is expensive.
	if err := m.storedVersions(t, "v1alpha2"); err != nil {
		return err
	}
	return m.allStored(t, "v1alpha2")
}

// migrate waits until the migration is complete, and requires that clients read the same objects as
// before.
func (m *migration) migrate(t *testing.T, before map[string]map[string]any) {
	t.Helper()
	began := time.Now()
	awaitEvery(t, 500*time.Millisecond, func() error { return m.done(t) })
	t.Logf("done %s after the CRD was flipped", time.Since(began).Round(time.Millisecond))
	if diff := gocmp.Diff(before, m.content(t)); diff != "" {
		t.Errorf("the migration changed objects (-before +after):\n%.4000s", diff)
	}
}

// awaitSuccess waits until the operator reports this number of successful migrations, and no
// running one.
func (m *migration) awaitSuccess(t *testing.T, migrations float64) {
	t.Helper()
	await(t, func() error {
		if m.metric(t, runningMetric) != 0 || m.metric(t, unmigratedMetric) != 0 || m.metric(t, succeededMetric) != migrations {
			return errors.New("the metrics do not say that it succeeded")
		}
		return m.event(t, crdName, "Normal", "StorageMigrationSucceeded")
	})
}

// event returns an error if the operator has not published this Event about an object.
func (m *migration) event(t *testing.T, name, kind, reason string) error {
	t.Helper()
	list := &eventsv1.EventList{}
	harness.Must(t, m.admin.List(t.Context(), list))
	if !slices.ContainsFunc(list.Items, func(e eventsv1.Event) bool {
		return e.Regarding.Name == name && e.Type == kind && e.Reason == reason
	}) {
		return fmt.Errorf("there is no Event %s %s on %s", kind, reason, name)
	}
	return nil
}

func testMigrationWithoutMigrator(t *testing.T, m *migration) {
	before, succeeded := m.flip(t), m.metric(t, succeededMetric)
	created := m.createMeanwhile(t)
	m.migrate(t, before)
	created(t)
	m.awaitSuccess(t, succeeded+1)
}

// testMigrationByKilledOperator kills the only replica, so no object can be converted until it is
// back. A slow conversion leaves time to kill the replica before it has rewritten all objects.
func testMigrationByKilledOperator(t *testing.T, m *migration) {
	before := m.flip(t)
	m.service.Delay(100 * time.Millisecond)
	for _, rewritten := range []int{0, migrated / 4, migrated * 3 / 4} {
		m.waitForRewritten(t, rewritten)
		m.kill(t)
		if m.allStored(t, "v1alpha2") == nil {
			t.Errorf("all objects were rewritten before the operator was killed, want about %d", rewritten)
		}
		m.operator = m.startOperator(t)
	}
	m.service.Delay(0)
	m.migrate(t, before)
}

// waitForRewritten waits until at least n objects have been rewritten since the CRD was flipped.
func (m *migration) waitForRewritten(t *testing.T, n int) {
	t.Helper()
	await(t, func() error {
		stored, err := harness.StoredVersions(t.Context(), m.Etcd)
		if err != nil {
			return err
		}
		rewritten := 0
		for _, version := range stored {
			if version == v1alpha2.GroupVersion.String() {
				rewritten++
			}
		}
		if rewritten < n {
			return fmt.Errorf("only %d objects are rewritten", rewritten)
		}
		t.Logf("%d of %d objects are rewritten, want at least %d", rewritten, len(stored), n)
		return nil
	})
}
