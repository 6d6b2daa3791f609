package e2e

// The storage migration under failures. Each test makes the CRD store v1alpha1 again, rewrites
// every object until etcd contains it as v1alpha1, switches the storage version as the upgrade
// does, and then injects a failure.
//
//   - If the leader is killed, the other replica finishes the migration. No response is wrong, and
//     no object is lost.
//   - If no webhook answers for a while, no object is lost. The migration finishes automatically
//     after a webhook answers again.

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/test/harness"
)

// store sets the storage version of the CRD.
func store(t *testing.T, version string) {
	t.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: crdName}}
	update(t, crd, func(crd *apiextensionsv1.CustomResourceDefinition) {
		harness.SetStorageVersion(crd, version)
	})
}

// storeOlder restores the state before the upgrade: each object is stored as v1alpha1.
func (f *fleet) storeOlder(t *testing.T) {
	t.Helper()
	store(t, older)
	waitFor(t, f.namespace, "the objects to be stored as "+older, patience, func(ctx context.Context) error {
		patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"example.com/touched":"%d"}}}`, time.Now().UnixNano())
		for name := range f.ports {
			// An API server that has not read the changed CRD yet stores the previous version.
			if err := suite.admin.Patch(ctx, newObject(f.namespace, name, 0), client.RawPatch(types.MergePatchType, patch)); err != nil {
				return err
			}
		}
		return allStoredAs(ctx, f.namespace, older)
	})
}

// running waits until the control plane has started to migrate. On a cluster without a migrator, it
// waits until the operator has stored the first object.
func (f *fleet) running(t *testing.T, operator string) {
	t.Helper()
	waitFor(t, operator, "the migration to start", patience, func(ctx context.Context) error {
		migration := objectOf("storagemigration.k8s.io/v1", "StorageVersionMigration", crdName)
		err := suite.admin.Get(ctx, client.ObjectKeyFromObject(migration), migration)
		if meta.IsNoMatchError(err) {
			return checkStored(ctx, f.namespace, func(counts map[string]int) error {
				if counts[newer] == 0 {
					return fmt.Errorf("objects are stored as %v", counts)
				}
				return nil
			})
		}
		if err != nil {
			return err
		}
		crd, err := readCRD(ctx)
		if err == nil && migration.GetAnnotations()["operator.example.com/definition-generation"] != fmt.Sprint(crd.Generation) {
			err = errors.New("the migration is one from before")
		}
		return err
	})
}

// testMigrationKilled kills a process on the node, so it requires the local cluster.
func testMigrationKilled(t *testing.T) {
	f := newFleet(t, fewObjects)
	operator := suite.operatorNamespace
	f.storeOlder(t)
	reads := []*reader{startReader(t, f.namespace, older, f.ports), startReader(t, f.namespace, newer, f.ports)}
	before, err := leader(t.Context(), operator)
	must(t, err)
	store(t, newer)
	f.running(t, operator)
	killed := time.Now()
	killLeader(t, operator, before)
	storageMigrated(t, operator, f.namespace, csvName(), false)
	after, _ := waitForOtherLeader(t, operator, before)
	lease, err := readLease(t.Context(), operator)
	must(t, err)
	took := lease.Spec.AcquireTime.Sub(killed)
	t.Logf("FIGURE leader killed: %s leads after %s, and finished what %s began", after, seconds(took), before)
	if took > killLimit {
		t.Errorf("the change of leader took %s", seconds(took))
	}
	for _, reader := range reads {
		// Failed reads do not count here, because a killed process loses its in-flight requests.
		reader.finish(t, "while the leader is killed in a migration")
	}
	must(t, errors.Join(f.asCreated(t.Context(), older), f.asCreated(t.Context(), newer)))
	waitForInstall(t, operator)
}

func testMigrationWithoutWebhook(t *testing.T) {
	f := newFleet(t, fewObjects)
	operator := suite.operatorNamespace
	f.storeOlder(t)
	store(t, newer)
	f.running(t, operator)
	scaleOperator(t, 0)
	f.staysUnconverted(t, 5*time.Second)
	scaleOperator(t, 2)
	waitForInstall(t, operator)
	storageMigrated(t, operator, f.namespace, csvName(), false)
	must(t, errors.Join(f.asCreated(t.Context(), older), f.asCreated(t.Context(), newer)))
	f.samePods(t, "without webhooks")
}

// staysUnconverted requires for a while that no instance can be read in both versions, because no
// webhook converts it. Without this check, the test would also pass with a webhook that still
// answers.
func (f *fleet) staysUnconverted(t *testing.T, period time.Duration) {
	t.Helper()
	unconverted := func(ctx context.Context) error {
		for name := range f.ports {
			var errs []error
			for _, version := range []string{older, newer} {
				object := objectOf("operator.example.com/"+version, "NginxOperator", name)
				object.SetNamespace(f.namespace)
				errs = append(errs, suite.admin.Get(ctx, client.ObjectKeyFromObject(object), object))
			}
			err := errors.Join(errs...)
			if err == nil {
				return fmt.Errorf("NginxOperator %s can be read at %s and %s without a webhook", name, older, newer)
			}
			if !strings.Contains(err.Error(), "conversion webhook") {
				return fmt.Errorf("cannot read NginxOperator %s for another reason than its conversion: %w", name, err)
			}
		}
		return nil
	}
	waitFor(t, f.namespace, "reads to fail without a webhook", patience, unconverted)
	holds(t, f.namespace, "objects without a webhook", period, unconverted)
}
