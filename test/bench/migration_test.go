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
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
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
// The objects are paused, so that nothing else writes them. The test also checks that each object
// was written. BENCH_OBJECTS is the number of objects, 10,000 by default.
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
	manifest, err := filepath.Abs("../../config/storagemigration/storageversionmigration.yaml")
	must(t, err)
	t.Setenv(manifestVariable, manifest)
	leader = e.startLeader(t)
	e.measure(t, "control-plane-asked-by-operator", namespace, objects)
	e.storeAtV1alpha1(t, namespace)
	leader.Stop()
	controllerManager.Stop()

	t.Setenv(manifestVariable, "")
	e.startLeader(t)
	e.measure(t, "operator-itself", namespace, objects)
}

// measure makes v1alpha2 the storage version. It reports the time until the first object is
// rewritten, and until status.storedVersions of the CRD has only v1alpha2.
func (e *environment) measure(t *testing.T, who, namespace string, objects int) {
	t.Helper()
	figure := fmt.Sprintf("migration-%d-%s", objects, who)
	rewrites := e.watchRewrites(t, namespace)
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
		return rewrites.all()
	})
	took := time.Since(began)
	harness.Report(figure, seconds(took), "s")
	harness.Report(figure+"-until-first-write", seconds(rewrites.first.Sub(began)), "s")
	harness.Report(figure+"-rate", harness.Round(float64(objects)/(took-rewrites.first.Sub(began)).Seconds()), "objects/s")
}

// rewrites records which objects were written after it was created.
type rewrites struct {
	mu    sync.Mutex
	first time.Time
	// left has the original resource versions of the objects that were not written yet.
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

// names returns the names of the objects that were not written yet.
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
		// The API server closes watches when the CRD changes. Each new watch starts with all
		// existing objects.
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
func (e *environment) storeAtV1alpha1(t *testing.T, namespace string) {
	t.Helper()
	rewrites := e.watchRewrites(t, namespace)
	e.store(t, v1alpha1.GroupVersion.Version)
	// The API server adopts the new storage version with a delay. A write before that changes
	// nothing and is repeated.
	waitFor(t, migrationPatience, func() error {
		left := rewrites.names()
		inParallel(t, concurrency, len(left), func(ctx context.Context, i int) error {
			object := &v1alpha2.NginxOperator{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: left[i]}}
			return e.admin.Patch(ctx, object, client.RawPatch(types.MergePatchType, []byte("{}")))
		})
		return rewrites.all()
	})
}

// startControllerManager starts kube-controller-manager with the control plane's migrator, as a
// ServiceAccount with all RBAC permissions. The cleanup of the test stops it.
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
