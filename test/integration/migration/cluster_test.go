package migration

// This file contains the helpers that the tests share. The tests use their own API servers, because
// they change the storage version, and need a kube-controller-manager or an API server without the
// migration API.

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/internal/scheme"
	"github.com/example/nginx-operator/test/harness"
	"github.com/example/nginx-operator/test/harness/apiserver"
	"github.com/example/nginx-operator/test/harness/repeat"
)

const (
	// migrated is the number of objects: more than the operator or the control plane rewrite at the
	// same time. test/bench migrates 10,000.
	migrated = 40
	// patience bounds every wait. It is long because a busy machine may be slow at any moment.
	patience = 5 * time.Minute
	// writers is the number of objects that the tests write concurrently.
	writers = 10
	// crdName is also the name of the StorageVersionMigration.
	crdName = "nginxoperators.operator.example.com"
	// storedNamespace contains the objects that exist from the start. Clients keep writing to
	// busyNamespace.
	storedNamespace, busyNamespace = "stored", "busy"
)

// migration is an API server with the operator's manifests, the objects, and the operator.
type migration struct {
	*apiserver.Server
	admin client.Client
	// dir is a temporary directory.
	dir     string
	service *harness.Service
	// binary is the operator. operator is the replica that leads, or will lead when no other
	// replica has the Lease.
	binary   string
	operator *harness.Manager
	scraper  *apiserver.Scraper
	// owner is the test at whose end everything stops.
	owner *testing.T
}

// startMigration starts everything, with a program of the Makefile as the operator. args are
// additional arguments of the API server.
func startMigration(t *testing.T, program string, args ...[2]string) *migration {
	t.Helper()
	m := &migration{
		owner: t, binary: harness.Must1(harness.Program(program))(t), dir: t.TempDir(), service: harness.Must1(harness.NewService())(t),
	}
	t.Cleanup(m.service.Close)
	m.Server = harness.Must1(apiserver.Start(m.dir, harness.OperatorUser, args...))(t)
	t.Cleanup(func() { harness.Must(t, m.Stop()) })
	m.Admin.QPS = -1
	m.admin = harness.Must1(client.New(m.Admin, client.Options{Scheme: scheme.New()}))(t)
	harness.Must(t, apiserver.Apply(t.Context(), m.admin, "../../../config/default"))
	t.Cleanup(func() {
		if t.Failed() {
			crd, err := m.crd(context.Background())
			t.Logf("generation %d of the CRD has the status %v, %v", crd.Generation, crd.Status, err)
			list := &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": ofControlPlane, "kind": "StorageVersionMigrationList"}}
			t.Logf("%v, %v", m.admin.List(context.Background(), list), list.Items)
		}
	})
	m.operator = m.startOperator(t)
	m.storeAsBefore(t)
	for _, name := range []string{storedNamespace, busyNamespace} {
		harness.Must(t, m.admin.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}))
	}
	m.createObjects(t)
	return m
}

// await repeats a check until it passes, and fails the test with the check's last error if it never
// does.
func await(t *testing.T, check func() error) {
	t.Helper()
	awaitEvery(t, 100*time.Millisecond, check)
}

// awaitEvery is await with another interval. Reading all stored objects costs as much as the
// migration itself.
func awaitEvery(t *testing.T, interval time.Duration, check func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	harness.Must(t, harness.Eventually(ctx, interval, func(context.Context) error { return check() }))
}

// startControllerManager starts kube-controller-manager, which contains the control plane's own
// migrator.
func (m *migration) startControllerManager(t *testing.T) {
	t.Helper()
	binary := filepath.Join(os.Getenv("KUBEBUILDER_ASSETS"), "kube-controller-manager")
	manager := harness.Must1(harness.StartControllerManager(t.Context(), binary, m.AdminKubeconfig, m.dir, harness.Migrators...))(t)
	t.Cleanup(func() {
		manager.Stop()
		if t.Failed() {
			t.Log("the kube-controller-manager:", manager.Summary())
		}
	})
}

// startOperator starts another replica and waits until it is ready.
func (m *migration) startOperator(t *testing.T) *harness.Manager {
	t.Helper()
	operator := harness.Must1(harness.StartManager(harness.ManagerOptions{
		Binary: m.binary, Kubeconfig: m.Kubeconfig, Namespace: harness.OperatorNamespace, Dir: m.dir,
		Service: m.service,
		Args: []string{
			"--leader-elect", "--leader-election-namespace=" + harness.OperatorNamespace,
			"--storage-migration-manifest=../../../config/storagemigration/storageversionmigration.yaml",
		},
		Env: []string{"RELATED_IMAGE_NGINX=" + harness.OperandImage},
	}))(t)
	m.owner.Cleanup(func() {
		operator.Kill()
		if m.owner.Failed() {
			m.owner.Log("a replica of the operator:", operator.Summary())
		}
	})
	return operator
}

// kill kills the leader like a failing node.
func (m *migration) kill(t *testing.T) {
	t.Helper()
	harness.Must(t, m.operator.KillLeader(m.admin))
}

func (m *migration) crd(ctx context.Context) (*apiextensionsv1.CustomResourceDefinition, error) {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	return crd, m.admin.Get(ctx, client.ObjectKey{Name: crdName}, crd)
}

func (m *migration) changeCRD(t *testing.T, change func(*apiextensionsv1.CustomResourceDefinition)) {
	t.Helper()
	harness.Must(t, harness.RetryOnConflict(func() error {
		crd, err := m.crd(t.Context())
		if err != nil {
			return err
		}
		change(crd)
		return m.admin.Update(t.Context(), crd)
	}))
}

// busy writes an object repeatedly until the returned function is called, like the clients and the
// operator in a larger cluster. The control plane's migrator waits for a change of an object or for
// a bookmark, which the API server sends only once a minute.
func (m *migration) busy(t *testing.T) (stop func()) {
	t.Helper()
	object := newInstance(busyNamespace, "busy")
	object.Spec.Paused = true
	harness.Must(t, client.IgnoreAlreadyExists(m.admin.Create(t.Context(), object)))
	calls := repeat.Start(t.Context(), 200*time.Millisecond, func(ctx context.Context, i int) error {
		patch := fmt.Appendf(nil, `{"metadata":{"labels":{"written":"%d"}}}`, i)
		// The write may fail while the test disables the conversion.
		return m.admin.Patch(ctx, newInstance(busyNamespace, "busy"), client.RawPatch(types.MergePatchType, patch))
	})
	stop = func() { calls.Stop() }
	t.Cleanup(stop)
	return stop
}

// svm returns the operator's StorageVersionMigration of an API, or nil if it or the API does not
// exist.
func (m *migration) svm(t *testing.T, apiVersion string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": "StorageVersionMigration"}}
	err := m.admin.Get(t.Context(), client.ObjectKey{Name: crdName}, object)
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return nil
	}
	harness.Must(t, err)
	return object
}

// is reports whether an object has a condition with status True. The object may be nil.
func is(object *unstructured.Unstructured, condition string) bool {
	if object == nil {
		return false
	}
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	return slices.ContainsFunc(conditions, func(one any) bool {
		fields, _ := one.(map[string]any)
		return fields["type"] == condition && fields["status"] == "True"
	})
}

// metric returns the value of one of the leader's metrics, whose name may have labels.
func (m *migration) metric(t *testing.T, name string) float64 {
	t.Helper()
	if m.scraper == nil {
		m.scraper = harness.Must1(apiserver.NewScraper(t.Context(), m.admin, busyNamespace, harness.MetricsRole))(t)
	}
	metrics := harness.Must1(m.scraper.Scrape(t.Context(), m.operator.Metrics))(t)
	return harness.Must1(harness.Samples(metrics, name))(t)[0].Value
}
