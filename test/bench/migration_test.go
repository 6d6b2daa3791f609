//go:build bench

package bench

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagemigrationv1 "k8s.io/api/storagemigration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha1"
	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/wellknown"
	"github.com/example/nginx-operator/test/harness"
)

const (
	// migrationPatience bounds one migration. The control plane's migrator, once it met errors, may pause for 1000 s.
	migrationPatience = 20 * time.Minute
	crdName           = "nginxoperators.operator.example.com"
	// manifestVariable is --storage-migration-manifest. Without it the operator rewrites objects itself.
	manifestVariable = "NGINX_OPERATOR_STORAGE_MIGRATION_MANIFEST"
)

// TestStorageMigration measures how long it takes to move all objects from v1alpha1 to v1alpha2: by the control plane's own
// migrator, with an operator that only converts, which is the limit; by the same migrator, with the operator to ask for
// it; and by the operator itself. The objects are paused, so that nothing else is written meanwhile. It also counts that
// each object was written.
//
// BENCH_OBJECTS is the number of objects, 10,000 unless it is set.
func TestStorageMigration(t *testing.T) {
	objects := intFromEnv(t, "BENCH_OBJECTS", 10_000)
	e := newEnvironment(t)
	e.store(t, v1alpha1.GroupVersion.Version)
	leader := e.startLeader(t)
	namespace := e.newNamespace(t, "migration")
	inParallel(t, concurrency, objects, func(ctx context.Context, i int) error {
		object := newObject(namespace, i)
		object.Annotations = map[string]string{wellknown.AnnotationV1alpha2: `{"paused":true,"drainSeconds":60}`}
		return e.admin.Create(ctx, object)
	})
	e.waitForStatus(t, namespace, objects, 10*time.Minute)
	leader.Stop()
	controllerManager := e.startControllerManager(t)

	e.holdLease(t)
	converting := e.startOperator(t)
	e.measure(t, "control-plane-alone", namespace, objects, func() {
		must(t, e.admin.Create(t.Context(), byHand()))
	})
	must(t, e.admin.Delete(t.Context(), byHand()))
	e.storeAtV1alpha1(t, namespace)
	converting.Stop()
	e.releaseLease(t)

	manifest, err := filepath.Abs("../../config/storagemigration/storageversionmigration.yaml")
	must(t, err)
	t.Setenv(manifestVariable, manifest)
	leader = e.startLeader(t)
	e.measure(t, "control-plane-asked-by-operator", namespace, objects, func() {})
	e.storeAtV1alpha1(t, namespace)
	leader.Stop()
	controllerManager.Stop()

	t.Setenv(manifestVariable, "")
	e.startLeader(t)
	e.measure(t, "operator-itself", namespace, objects, func() {})
}

// byHand is a StorageVersionMigration that is not the operator's.
func byHand() *storagemigrationv1.StorageVersionMigration {
	return &storagemigrationv1.StorageVersionMigration{
		ObjectMeta: metav1.ObjectMeta{Name: "by-hand"},
		Spec: storagemigrationv1.StorageVersionMigrationSpec{
			Resource: metav1.GroupResource{Group: v1alpha2.GroupVersion.Group, Resource: "nginxoperators"},
		},
	}
}

// measure has v1alpha2 stored from now on, and reports how long it takes from then on until the first object is rewritten
// and until the CRD promises that all are.
func (e *environment) measure(t *testing.T, who, namespace string, objects int, begin func()) {
	t.Helper()
	figure := fmt.Sprintf("migration-%d-%s", objects, who)
	rewrites := e.watchRewrites(t, namespace)
	e.store(t, v1alpha2.GroupVersion.Version)
	began := time.Now()
	begin()
	waitFor(t, migrationPatience, func() error {
		crd, err := e.crd(t.Context())
		if err != nil {
			return err
		}
		if stored := crd.Status.StoredVersions; !slices.Equal(stored, []string{v1alpha2.GroupVersion.Version}) {
			return fmt.Errorf("status.storedVersions is %v", stored)
		}
		// The control plane of 1.37 prunes when a second migration of a CRD begins.
		return rewrites.all()
	})
	took := time.Since(began)
	harness.Report(figure, seconds(took), "s")
	harness.Report(figure+"-until-first-write", seconds(rewrites.first.Sub(began)), "s")
	harness.Report(figure+"-rate", harness.Round(float64(objects)/(took-rewrites.first.Sub(began)).Seconds()), "objects/s")
}

// rewrites tell which objects were written since then.
type rewrites struct {
	mu    sync.Mutex
	first time.Time
	// left has the resource versions of those that were not.
	left map[string]string
}

func (r *rewrites) all() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.left) > 0 {
		return fmt.Errorf("%d objects were not written", len(r.left))
	}
	return nil
}

// names returns the objects that were not written.
func (r *rewrites) names() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Collect(maps.Keys(r.left))
}

func (r *rewrites) record(object *metav1.PartialObjectMetadata) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if before, left := r.left[object.Name]; !left || before == object.ResourceVersion {
		return
	}
	if r.first.IsZero() {
		r.first = time.Now()
	}
	delete(r.left, object.Name)
}

func (e *environment) watchRewrites(t *testing.T, namespace string) *rewrites {
	t.Helper()
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(v1alpha2.GroupVersion.WithKind("NginxOperatorList"))
	must(t, e.admin.List(t.Context(), list, client.InNamespace(namespace)))
	r := &rewrites{left: map[string]string{}}
	for i := range list.Items {
		r.left[list.Items[i].Name] = list.Items[i].ResourceVersion
	}
	ctx, cancel := context.WithCancel(t.Context())
	var done sync.WaitGroup
	t.Cleanup(func() { cancel(); done.Wait() })
	done.Go(func() {
		// The API server ends watches when the CRD changes. Each begins with all objects as they are.
		for ctx.Err() == nil && r.all() != nil {
			watcher, err := e.admin.Watch(ctx, list, client.InNamespace(namespace))
			if err != nil {
				time.Sleep(20 * time.Millisecond)
				continue
			}
			for event := range watcher.ResultChan() {
				if object, ok := event.Object.(*metav1.PartialObjectMetadata); ok {
					r.record(object)
				}
				if r.all() == nil {
					break
				}
			}
			watcher.Stop()
		}
	})
	return r
}

func (e *environment) crd(ctx context.Context) (*apiextensionsv1.CustomResourceDefinition, error) {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	return crd, e.admin.Get(ctx, client.ObjectKey{Name: crdName}, crd)
}

// store has the API server store a version from now on.
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

// storeAtV1alpha1 stores all objects at v1alpha1 again.
func (e *environment) storeAtV1alpha1(t *testing.T, namespace string) {
	t.Helper()
	rewrites := e.watchRewrites(t, namespace)
	e.store(t, v1alpha1.GroupVersion.Version)
	// The API server follows a moment later; what was written too early did not change, and is written again.
	waitFor(t, migrationPatience, func() error {
		left := rewrites.names()
		inParallel(t, concurrency, len(left), func(ctx context.Context, i int) error {
			object := &v1alpha2.NginxOperator{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: left[i]}}
			return e.admin.Patch(ctx, object, client.RawPatch(types.MergePatchType, []byte("{}")))
		})
		return rewrites.all()
	})
}

// holdLease keeps operators from leading, so that all they do is convert.
func (e *environment) holdLease(t *testing.T) {
	t.Helper()
	e.releaseLease(t)
	now := metav1.NowMicro()
	must(t, e.admin.Create(t.Context(), &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: operatorNamespace, Name: leaseName},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: ptr.To("bench"), LeaseDurationSeconds: ptr.To[int32](24 * 3600), AcquireTime: &now, RenewTime: &now,
		},
	}))
}

func (e *environment) releaseLease(t *testing.T) {
	t.Helper()
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: operatorNamespace, Name: leaseName}}
	must(t, client.IgnoreNotFound(e.admin.Delete(t.Context(), lease)))
}

// startControllerManager starts the control plane's own migrator, as a service account with all RBAC permissions. It ends with the
// test at the latest.
func (e *environment) startControllerManager(t *testing.T) *harness.ControllerManager {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: "kube-controller-manager"}}
	must(t, e.admin.Create(t.Context(), account))
	must(t, e.admin.Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: account.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: account.Namespace, Name: account.Name}},
	}))
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To[int64](4 * 3600)}}
	must(t, e.admin.SubResource("token").Create(t.Context(), account, request))
	config, err := clientcmd.LoadFromFile(e.kubeconfig)
	must(t, err)
	for name := range config.AuthInfos {
		config.AuthInfos[name] = &api.AuthInfo{Token: request.Status.Token}
	}
	kubeconfig := filepath.Join(e.dir, "controller-manager.kubeconfig")
	must(t, clientcmd.WriteToFile(*config, kubeconfig))
	binary := filepath.Join(os.Getenv("KUBEBUILDER_ASSETS"), "kube-controller-manager")
	manager, err := harness.StartControllerManager(t.Context(), binary, kubeconfig, e.dir)
	must(t, err)
	t.Cleanup(manager.Stop)
	return manager
}
