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
	// migrationPatience bounds one migration. The control plane's migrator can back off for 1000 s
	// after errors.
	migrationPatience = 20 * time.Minute
	// manifestVariable sets --storage-migration-manifest. Without it, the operator rewrites objects
	// itself.
	manifestVariable = "NGINX_OPERATOR_STORAGE_MIGRATION_MANIFEST"
)

// TestStorageMigration measures the time to migrate all objects from v1alpha1 to v1alpha2: by the
// control plane's migrator on request of the operator, and by the operator.
//
// The objects are paused, so that nothing else writes them. The test also checks in etcd that each
// object was rewritten. BENCH_OBJECTS is the number of objects, 10,000 by default.
func TestStorageMigration(t *testing.T) {
	objects := intFromEnv(t, "BENCH_OBJECTS", 10_000)
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
	e.waitForStatus(t, namespace, objects, 10*time.Minute)
	leader.Stop()

	controllerManager := e.startControllerManager(t)
	manifest := must1(filepath.Abs("../../config/storagemigration/storageversionmigration.yaml"))(t)
	t.Setenv(manifestVariable, manifest)
	leader = e.startLeader(t)
	e.measure(t, "control-plane-asked-by-operator", objects)
	e.storeAtV1alpha1(t)
	leader.Stop()
	controllerManager.Stop()

	t.Setenv(manifestVariable, "")
	e.startLeader(t)
	e.measure(t, "operator-itself", objects)
}

// measure makes v1alpha2 the storage version. It reports the time until all objects are rewritten
// and status.storedVersions of the CRD has only v1alpha2.
func (e *environment) measure(t *testing.T, who string, objects int) {
	t.Helper()
	e.store(t, v1alpha2.GroupVersion.Version)
	began := time.Now()
	waitFor(t, migrationPatience, func() error {
		crd, err := e.crd(t.Context())
		if err != nil {
			return err
		}
		if stored := crd.Status.StoredVersions; !slices.Equal(stored, []string{v1alpha2.GroupVersion.Version}) {
			return fmt.Errorf("status.storedVersions is %v", stored)
		}
		// Kubernetes 1.37 prunes storedVersions when a second migration of a CRD starts.
		if left := e.storedOtherwise(t, v1alpha2.GroupVersion); len(left) > 0 {
			time.Sleep(500 * time.Millisecond) // reading all objects is expensive
			return fmt.Errorf("%d objects were not rewritten", len(left))
		}
		return nil
	})
	harness.Report(fmt.Sprintf("migration-%d-%s", objects, who), seconds(time.Since(began)), "s")
}

func (e *environment) crd(ctx context.Context) (*apiextensionsv1.CustomResourceDefinition, error) {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	return crd, e.admin.Get(ctx, client.ObjectKey{Name: wellknown.CRDName}, crd)
}

// store changes the storage version of the CRD.
func (e *environment) store(t *testing.T, version string) {
	t.Helper()
	must(t, harness.RetryOnConflict(func() error {
		crd, err := e.crd(t.Context())
		if err != nil {
			return err
		}
		harness.SetStorageVersion(crd, version)
		return e.admin.Update(t.Context(), crd)
	}))
}

// storeAtV1alpha1 makes v1alpha1 the storage version and rewrites all objects.
func (e *environment) storeAtV1alpha1(t *testing.T) {
	t.Helper()
	e.store(t, v1alpha1.GroupVersion.Version)
	// The API server adopts the new storage version with a delay. A write before that changes
	// nothing and is repeated.
	waitFor(t, migrationPatience, func() error {
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
	manager := must1(harness.StartControllerManager(t.Context(), binary, e.server.AdminKubeconfig, e.dir))(t)
	t.Cleanup(manager.Stop)
	return manager
}
