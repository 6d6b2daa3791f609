//go:build bench

package bench

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha1"
	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/wellknown"
	"github.com/example/nginx-operator/test/harness"
)

const (
	// migrationPatience and patiencePerObject bound the creation of the objects, and each
	// migration. The control plane's migrator can back off for 1000 s after errors.
	migrationPatience = 20 * time.Minute
	patiencePerObject = 50 * time.Millisecond
	// manifestVariable sets --storage-migration-manifest. Without it, the operator rewrites objects
	// itself.
	manifestVariable = "NGINX_OPERATOR_STORAGE_MIGRATION_MANIFEST"
	// pollEvery is the time between two looks at a migration. Each look decodes the CRD, and later
	// all stored objects: every 20 ms, that used most of a processor.
	pollEvery = time.Second
	// pageObjects is the number of objects for which docs/performance.md has the results.
	pageObjects = 50_000
)

// TestStorageMigration measures the time to migrate all objects from v1alpha1 to v1alpha2: by the
// control plane's migrator on request of the operator, and by the operator. After the second one,
// it measures the cost of a served v1alpha1.
//
// The objects are paused, so that nothing else writes them. The test also checks in etcd that each
// object was rewritten. BENCH_OBJECTS is the number of objects, 10,000 by default.
func TestStorageMigration(t *testing.T) {
	objects := intFromEnv(t, "BENCH_OBJECTS", 10_000)
	patience := migrationPatience + time.Duration(objects)*patiencePerObject
	e := newEnvironment(t)
	e.store(t, v1alpha1.GroupVersion.Version)
	leader := e.startLeader(t)
	namespace := e.newNamespace(t, "migration")
	inParallel(t, concurrency, objects, func(ctx context.Context, i int) error {
		return e.admin.Create(ctx, &v1alpha1.NginxOperator{ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: fmt.Sprintf("web-%05d", i),
			Annotations: map[string]string{wellknown.AnnotationV1alpha2: `{"paused":true,"drainSeconds":60}`},
		}})
	})
	e.waitForStatus(t, namespace, objects, patience)
	leader.Stop()

	t.Run("control-plane", func(t *testing.T) {
		controllerManager := e.startControllerManager(t)
		t.Setenv(manifestVariable, must1(filepath.Abs("../../config/storagemigration/storageversionmigration.yaml"))(t))
		leader := e.startLeader(t)
		took := e.measure(t, leader, "control-plane-asked-by-operator", objects, patience)
		writePlace(t, "migration-control-plane", migrationLine("The control plane's migrator", objects, took), objects != pageObjects)
		leader.Stop()
		controllerManager.Stop()
	})
	t.Run("operator", func(t *testing.T) {
		leader := e.startLeader(t)
		took := e.measure(t, leader, "operator-itself", objects, patience)
		writePlace(t, "migration-operator", migrationLine("The operator", objects, took), objects != pageObjects)
		e.compareServed(t, leader, objects, patience)
		leader.Stop()
	})
}

func migrationLine(who string, objects int, took time.Duration) string {
	return fmt.Sprintf("%s moved %d objects in %.0f s, %.0f per second.\n", who, objects, took.Seconds(), float64(objects)/took.Seconds())
}

// measure stores all objects at v1alpha1 and then makes v1alpha2 the storage version. It reports
// the time until all objects are rewritten and status.storedVersions of the CRD has only v1alpha2.
// The test ends if the leader does, because nothing would convert the other objects.
func (e *environment) measure(t *testing.T, leader *harness.Manager, who string, objects int, patience time.Duration) time.Duration {
	t.Helper()
	e.storeAtV1alpha1(t, patience)
	e.store(t, v1alpha2.GroupVersion.Version)
	began := time.Now()
	waitFor(t, patience, func() error {
		select {
		case <-leader.Done():
			t.Fatalf("the operator ended during the migration: %s", leader.Summary())
		case <-time.After(pollEvery):
		}
		crd, err := e.crd(t.Context())
		if err != nil {
			return err
		}
		if stored := crd.Status.StoredVersions; !slices.Equal(stored, []string{v1alpha2.GroupVersion.Version}) {
			return fmt.Errorf("status.storedVersions is %v", stored)
		}
		// Kubernetes 1.37 prunes storedVersions when a second migration of a CRD starts.
		if left := e.storedOtherwise(t, v1alpha2.GroupVersion); len(left) > 0 {
			return fmt.Errorf("%d objects were not rewritten", len(left))
		}
		return nil
	})
	took := time.Since(began)
	harness.Report(fmt.Sprintf("migration-%d-%s", objects, who), seconds(took), "s")
	return took
}

func (e *environment) crd(ctx context.Context) (*apiextensionsv1.CustomResourceDefinition, error) {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	return crd, e.admin.Get(ctx, client.ObjectKey{Name: wellknown.CRDName}, crd)
}

// store changes the storage version of the CRD.
func (e *environment) store(t *testing.T, version string) {
	t.Helper()
	e.updateCRD(t, func(crd *apiextensionsv1.CustomResourceDefinition) { harness.SetStorageVersion(crd, version) })
}

func (e *environment) updateCRD(t *testing.T, change func(*apiextensionsv1.CustomResourceDefinition)) {
	t.Helper()
	must(t, harness.RetryOnConflict(func() error {
		crd, err := e.crd(t.Context())
		if err != nil {
			return err
		}
		change(crd)
		return e.admin.Update(t.Context(), crd)
	}))
}

// storeAtV1alpha1 makes v1alpha1 the storage version and rewrites all objects.
func (e *environment) storeAtV1alpha1(t *testing.T, patience time.Duration) {
	t.Helper()
	e.store(t, v1alpha1.GroupVersion.Version)
	// The API server adopts the new storage version with a delay. A write before that changes
	// nothing and is repeated.
	waitFor(t, patience, func() error {
		left := e.storedOtherwise(t, v1alpha1.GroupVersion)
		inParallel(t, concurrency, len(left), func(ctx context.Context, i int) error {
			namespace, name, _ := strings.Cut(left[i], "/")
			object := &v1alpha2.NginxOperator{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
			return e.admin.Patch(ctx, object, client.RawPatch(types.MergePatchType, []byte("{}")))
		})
		if len(left) > 0 {
			return fmt.Errorf("%d objects were not stored at v1alpha1", len(left))
		}
		return nil
	})
}

// storedOtherwise returns the namespaces and names of the objects that etcd has at another version.
func (e *environment) storedOtherwise(t *testing.T, version schema.GroupVersion) []string {
	t.Helper()
	stored := must1(harness.StoredVersions(t.Context(), e.server.Etcd))(t)
	maps.DeleteFunc(stored, func(_, apiVersion string) bool { return apiVersion == version.String() })
	return slices.Collect(maps.Keys(stored))
}

// startControllerManager starts kube-controller-manager with the control plane's migrator. The
// cleanup of the test stops it.
func (e *environment) startControllerManager(t *testing.T) *harness.Process {
	t.Helper()
	binary := filepath.Join(os.Getenv("KUBEBUILDER_ASSETS"), "kube-controller-manager")
	manager := must1(harness.StartControllerManager(t.Context(), binary, e.server.AdminKubeconfig, e.dir, harness.Migrators...))(t)
	t.Cleanup(manager.Stop)
	return manager
}
