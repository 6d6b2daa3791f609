// Package migration tests the storage migration. It verifies in etcd that objects stored at
// v1alpha1 are stored at v1alpha2 afterwards. Nothing else about the objects changes for clients of
// either version.
//
// These tests run their own API servers and mostly wait for the control plane. They are a separate
// package so that they run in parallel with the other integration tests.
package migration

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/example/nginx-operator/api/v1alpha1"
	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/test/harness"
	"github.com/example/nginx-operator/test/harness/apiserver"
	"github.com/example/nginx-operator/test/harness/repeat"
)

const (
	ofControlPlane = "storagemigration.k8s.io/v1"
	ofKubeMigrator = "migration.k8s.io/v1alpha1"
	// runningMetric and the following constants are the operator's metrics of the migration.
	runningMetric    = "nginx_operator_storage_migration_running"
	unmigratedMetric = "nginx_operator_storage_migration_unmigrated_objects"
	succeededMetric  = `nginx_operator_storage_migrations_total{outcome="succeeded"}`
	failedMetric     = `nginx_operator_storage_migrations_total{outcome="failed"}`
)

// TestMigrationByTheControlPlane verifies the migration by the control plane's own migrator. The
// operator requests it and checks the result.
func TestMigrationByTheControlPlane(t *testing.T) {
	t.Parallel()
	apiserver.Needs(t, "1.37.0", "storagemigration.k8s.io/v1")
	// TestMigrationByTheOperator uses the race detector.
	m := startMigration(t, "test/manager")
	m.startControllerManager(t)
	m.run(t, []migrationTest{
		{"everything is right", testMigration},
		{"the CRD changes", testMigrationWhileCRDChanges},
		{"an object is rejected", testMigrationOfRejectedObject},
		{"the webhooks fail", testMigrationWithoutWebhooks},
		{"replicas are killed", testMigrationByKilledReplicas},
	})
	m.hasUsed(t, harness.MigrationPermissions)
}

type migrationTest struct {
	name string
	run  func(*testing.T, *migration)
}

func (m *migration) run(t *testing.T, tests []migrationTest) {
	t.Helper()
	for _, test := range tests {
		// Each test starts from the state that the previous one left behind.
		if !t.Run(test.name, func(t *testing.T) { test.run(t, m) }) {
			return
		}
	}
}

func testMigration(t *testing.T, m *migration) {
	before, succeeded := m.flip(t), m.metric(t, succeededMetric)
	created := m.createMeanwhile(t)
	await(t, func() error {
		if m.metric(t, runningMetric) != 1 {
			return errors.New("no migration is running")
		}
		return m.event(t, crdName, "Normal", "StorageMigrationStarted")
	})
	m.migrate(t, before)
	created(t)

	svm := m.svm(t, ofControlPlane)
	if !is(svm, "Succeeded") {
		t.Fatalf("the StorageVersionMigration did not succeed: %v", svm)
	}
	crd := harness.Must1(m.crd(t.Context()))(t)
	if owners := svm.GetOwnerReferences(); len(owners) != 1 || owners[0].UID != crd.UID {
		t.Errorf("the StorageVersionMigration does not go with the CRD: %v", owners)
	}
	m.awaitSuccess(t, succeeded+1)
	m.atSteadyState(t)
}

// atSteadyState requires that the operator reconciles a fully migrated CRD without writing
// anything.
func (m *migration) atSteadyState(t *testing.T) {
	t.Helper()
	const reconciles = `controller_runtime_reconcile_total{controller="storagemigration",result="success"}`
	before := m.metric(t, reconciles)
	var crd *apiextensionsv1.CustomResourceDefinition
	m.changeCRD(t, func(one *apiextensionsv1.CustomResourceDefinition) {
		one.Labels["example.com/looked-at"] = fmt.Sprint(before)
		crd = one
	})
	svm := m.svm(t, ofControlPlane)
	await(t, func() error {
		if m.metric(t, reconciles) == before {
			return errors.New("the operator does not look at the CRD")
		}
		return nil
	})
	if now := harness.Must1(m.crd(t.Context()))(t); now.ResourceVersion != crd.ResourceVersion {
		t.Error("somebody writes the CRD after the migration")
	}
	if now := m.svm(t, ofControlPlane); now == nil || now.GetResourceVersion() != svm.GetResourceVersion() {
		t.Errorf("somebody writes the StorageVersionMigration after the migration: %v", now)
	}
}

// createMeanwhile creates objects at both versions until the returned function is called, which
// checks the objects.
func (m *migration) createMeanwhile(t *testing.T) (look func(*testing.T)) {
	t.Helper()
	spec := harness.FullSpec()
	spec.Paused = true
	calls := repeat.Start(t.Context(), 500*time.Millisecond, func(ctx context.Context, n int) error {
		old, modern := newObject(busyNamespace, fmt.Sprintf("old-%d", n)), newInstance(busyNamespace, fmt.Sprintf("new-%d", n))
		old.Spec.Port, old.Spec.Replicas = ptr.To[int32](9000), ptr.To[int32](0)
		modern.Spec = spec
		return errors.Join(m.admin.Create(ctx, old), m.admin.Create(ctx, modern))
	})
	t.Cleanup(func() { calls.Stop() })
	return func(t *testing.T) {
		t.Helper()
		counts := calls.Stop()
		harness.Must(t, counts.First)
		n := counts.Total
		t.Logf("%d objects were created meanwhile", 2*n)
		harness.Must(t, m.allStored(t, "v1alpha2"))
		for i := range n {
			old, modern := &v1alpha1.NginxOperator{}, &v1alpha2.NginxOperator{}
			harness.Must(t, m.admin.Get(t.Context(), client.ObjectKey{Namespace: busyNamespace, Name: fmt.Sprintf("new-%d", i)}, modern))
			harness.Must(t, m.admin.Get(t.Context(), client.ObjectKeyFromObject(modern), old))
			if diff := gocmp.Diff(spec, modern.Spec); diff != "" || *old.Spec.Port != 8000 || old.Generation != 1 {
				t.Fatalf("%s has port %d and generation %d at v1alpha1, at v1alpha2:\n%s", old.Name, *old.Spec.Port, old.Generation, diff)
			}
			harness.Must(t, m.admin.Get(t.Context(), client.ObjectKey{Namespace: busyNamespace, Name: fmt.Sprintf("old-%d", i)}, modern))
			if len(modern.Spec.Ports) != 1 || modern.Spec.Ports[0].Port != 9000 || modern.Generation != 1 {
				t.Fatalf("%s has ports %v and generation %d at v1alpha2", modern.Name, modern.Spec.Ports, modern.Generation)
			}
		}
	}
}

func testMigrationOfRejectedObject(t *testing.T, m *migration) {
	name := storedName(20)
	rejected := storedNamespace + "/" + name
	var objects []client.Object
	for document := range strings.SplitSeq(harness.Refusal(name), "---\n") {
		object := &unstructured.Unstructured{}
		harness.Must(t, yaml.Unmarshal([]byte(document), &object.Object))
		objects = append(objects, object)
	}
	before := m.flip(t, func() {
		for _, object := range objects {
			harness.Must(t, m.admin.Create(t.Context(), object))
		}
		await(t, func() error {
			if m.touch(t.Context(), rejected) == nil {
				return errors.New("the object is not rejected")
			}
			return nil
		})
	})
	defer m.busy(t)()
	await(t, func() error {
		crd := harness.Must1(m.crd(t.Context()))(t)
		// The control plane sets the condition in the same write that prunes storedVersions.
		finished := apihelpers.FindCRDCondition(crd, apiextensionsv1.StorageMigrating)
		if finished == nil || finished.Reason != "MigrationFailed" {
			return errors.New("the control plane did not finish")
		}
		return errors.Join(
			m.storedVersions(t, "v1alpha1", "v1alpha2"), m.allStored(t, "v1alpha2", rejected),
			m.event(t, name, "Warning", "StorageMigrationFailed"), m.event(t, crdName, "Warning", "StorageMigrationFailed"),
		)
	})
	if !strings.Contains(m.operator.Log(), `"name":"`+name+`"`) {
		t.Error("the log does not name the object")
	}
	// The operator keeps retrying, and keeps reporting that the migration is not complete.
	attempts := m.metric(t, failedMetric)
	await(t, func() error {
		if now := m.metric(t, failedMetric); now < attempts+1 {
			return fmt.Errorf("%v attempts", now)
		}
		return nil
	})
	harness.Must(t, errors.Join(m.storedVersions(t, "v1alpha1", "v1alpha2"), m.allStored(t, "v1alpha2", rejected)))
	if running, unmigrated := m.metric(t, runningMetric), m.metric(t, unmigratedMetric); running != 1 || unmigrated != 1 {
		t.Errorf("running %v, want 1; %v objects not migrated, want 1", running, unmigrated)
	}

	for _, object := range objects {
		harness.Must(t, m.admin.Delete(t.Context(), object))
	}
	m.migrate(t, before)
	await(t, func() error {
		if unmigrated := m.metric(t, unmigratedMetric); unmigrated != 0 {
			return fmt.Errorf("%v objects are not migrated", unmigrated)
		}
		if m.svm(t, ofControlPlane) != nil {
			return errors.New("the failed StorageVersionMigration is still there")
		}
		return nil
	})
}

// testMigrationWhileCRDChanges verifies that the operator requests another migration if the CRD
// changes during the first one. In this case, the control plane does not prune
// status.storedVersions, because an API server may have stored objects at another version.
func testMigrationWhileCRDChanges(t *testing.T, m *migration) {
	before := m.flip(t)
	// No client writes objects, so the migrator waits before it starts.
	first := m.waitForRunning(t)
	m.changeCRD(t, func(crd *apiextensionsv1.CustomResourceDefinition) {
		crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Description += " Changed."
	})
	changed := harness.Must1(m.crd(t.Context()))(t)
	defer m.busy(t)()
	m.migrate(t, before)
	second := m.svm(t, ofControlPlane)
	if second == nil || second.GetUID() == first.GetUID() || !is(second, "Succeeded") {
		t.Fatalf("want a second StorageVersionMigration that succeeded, got %v", second)
	}
	if got := second.GetAnnotations()["operator.example.com/definition-generation"]; got != fmt.Sprint(changed.Generation) {
		t.Errorf("it was made for generation %s, the CRD has %d", got, changed.Generation)
	}
}

// waitForRunning waits until the control plane has started the migration.
func (m *migration) waitForRunning(t *testing.T) (svm *unstructured.Unstructured) {
	t.Helper()
	await(t, func() error {
		svm = m.svm(t, ofControlPlane)
		if !is(svm, "Running") {
			return errors.New("no StorageVersionMigration is running")
		}
		return nil
	})
	return svm
}

// testMigrationWithoutWebhooks verifies that the migration survives an outage of the conversion
// webhook. During the outage, the remaining objects cannot be rewritten, and the operator cannot
// read them.
func testMigrationWithoutWebhooks(t *testing.T, m *migration) {
	const outage = 5 * time.Second
	before := m.flip(t)
	m.waitForRunning(t)
	m.service.Cut(true)
	defer m.busy(t)()
	time.AfterFunc(outage, func() { m.service.Cut(false) })
	m.migrate(t, before)
}

func testMigrationByKilledReplicas(t *testing.T, m *migration) {
	standby := m.startOperator(t)
	before := m.flip(t)
	// The leader is killed, the standby takes over, and the cluster starts another replica.
	replace := func() {
		m.kill(t)
		m.operator, standby = standby, m.startOperator(t)
	}
	replace()
	m.waitForRunning(t)
	replace()
	defer m.busy(t)()
	m.waitForRewritten(t, migrated/3)
	replace()
	await(t, func() error {
		if !is(m.svm(t, ofControlPlane), "Succeeded") {
			return errors.New("no migration has succeeded")
		}
		return nil
	})
	replace()
	m.migrate(t, before)
	standby.Kill()
}
