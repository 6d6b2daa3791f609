package migration

// This file contains the helpers that the tests share. The tests use their own API servers, because
// they change the storage version, and need a kube-controller-manager or an API server without the
// migration API.

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/example/nginx-operator/api/v1alpha1"
	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/operatormanager"
	"github.com/example/nginx-operator/internal/wellknown"
	"github.com/example/nginx-operator/test/harness"
	"github.com/example/nginx-operator/test/harness/apiserver"
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
	admin client.Client
	// etcd is the address of etcd, from which the tests read the stored objects.
	etcd string
	// dir is a temporary directory. kubeconfig connects as the operator, adminKubeconfig with all
	// RBAC permissions.
	dir, kubeconfig, adminKubeconfig string
	// auditLog contains the operator's requests.
	auditLog string
	// service receives the calls of the webhooks' address, unless relay cuts it off.
	service *harness.Service
	relay   *relay
	// binary is the operator. operator is the replica that leads, or will lead when no other
	// replica has the Lease.
	binary   string
	operator *harness.Manager
	scraper  *apiserver.Scraper
	// owner is the test at whose end everything stops.
	owner *testing.T
}

// startMigration starts everything, with a program of the Makefile as the operator. args are
// additional arguments of the API server, each a name and a value.
func startMigration(t *testing.T, program string, args ...[2]string) *migration {
	t.Helper()
	m := &migration{
		owner: t, binary: harness.Must1(harness.Program(program))(t), dir: t.TempDir(), service: harness.Must1(harness.NewService())(t),
	}
	t.Cleanup(m.service.Close)
	m.relay = newRelay(t, m.service)
	env := apiserver.NewEnvironment()
	m.auditLog = harness.Must1(apiserver.RecordRequests(env, m.dir, harness.OperatorUser))(t)
	for _, arg := range args {
		env.ControlPlane.GetAPIServer().Configure().Append(arg[0], arg[1])
	}
	// Each object has a Service, and the default range has only 254 addresses.
	env.ControlPlane.GetAPIServer().Configure().Set("service-cluster-ip-range", "10.0.0.0/16")
	config := harness.Must1(env.Start())(t)
	t.Cleanup(func() { harness.Must(t, env.Stop()) })
	config.QPS = -1
	m.etcd = env.ControlPlane.Etcd.URL.String()
	m.admin = harness.Must1(client.New(config, client.Options{Scheme: operatormanager.NewScheme()}))(t)

	admin := harness.Must1(env.AddUser(envtest.User{Name: "admin", Groups: []string{"system:masters"}}, nil))(t)
	m.adminKubeconfig = m.writeKubeconfig(t, "admin", admin)
	kubectl := harness.Must1(admin.Kubectl())(t)
	if _, stderr, err := kubectl.Run("apply", "--server-side", "-k", "../../../config/default"); err != nil {
		t.Fatalf("failed to apply config/default: %v\n%s", err, harness.Must1(io.ReadAll(stderr))(t))
	}
	user := envtest.User{Name: harness.OperatorUser, Groups: []string{"system:serviceaccounts", "system:authenticated"}}
	m.kubeconfig = m.writeKubeconfig(t, "operator", harness.Must1(env.AddUser(user, nil))(t))
	t.Cleanup(func() {
		if t.Failed() {
			crd, err := m.crd(context.Background())
			t.Logf("generation %d of the CRD has the status %v, %v", crd.Generation, crd.Status, err)
			stdout, _, err := kubectl.Run("get", "storageversionmigrations", "--output=jsonpath={.items[*].status}")
			t.Logf("%s%v", harness.Must1(io.ReadAll(stdout))(t), err)
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

func (m *migration) writeKubeconfig(t *testing.T, name string, user *envtest.AuthenticatedUser) string {
	t.Helper()
	file := filepath.Join(m.dir, name+".kubeconfig")
	harness.Must(t, os.WriteFile(file, harness.Must1(user.KubeConfig())(t), 0o600))
	return file
}

// startControllerManager starts kube-controller-manager, which contains the control plane's own
// migrator.
func (m *migration) startControllerManager(t *testing.T) {
	t.Helper()
	binary := filepath.Join(os.Getenv("KUBEBUILDER_ASSETS"), "kube-controller-manager")
	manager := harness.Must1(harness.StartControllerManager(t.Context(), binary, m.adminKubeconfig, m.dir))(t)
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
		Binary: m.binary, Kubeconfig: m.kubeconfig, Namespace: harness.OperatorNamespace, Dir: m.dir,
		Service: m.service, WebhookURL: m.relay.url(),
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

// createObjects creates objects and waits until the operator has reconciled them. A v1alpha1 client
// creates two of three objects. The others have fields that v1alpha1 does not have. Most objects
// are paused: no test looks at their children, and creating them takes long.
func (m *migration) createObjects(t *testing.T) {
	t.Helper()
	harness.Must(t, harness.InParallel(t.Context(), writers, migrated, func(ctx context.Context, i int) error {
		if i%3 == 0 {
			object := newInstance(storedNamespace, storedName(i))
			object.Spec = harness.FullSpec()
			object.Spec.Replicas, object.Spec.Paused = ptr.To[int32](0), true
			return m.admin.Create(ctx, object)
		}
		object := newObject(storedNamespace, storedName(i))
		if i%10 != 1 {
			object.Annotations = map[string]string{wellknown.AnnotationV1alpha2: `{"paused":true}`}
		}
		object.Spec.Replicas, object.Spec.Port = ptr.To[int32](0), ptr.To(10000+int32(i)) //nolint:gosec // it is small
		// On a busy machine, the admission of a v1alpha1 write may exceed its timeout, and then the
		// write fails.
		ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
		defer cancel()
		return harness.Eventually(ctx, 100*time.Millisecond, func(ctx context.Context) error {
			return client.IgnoreAlreadyExists(m.admin.Create(ctx, object.DeepCopy()))
		})
	}))
	awaitEvery(t, 500*time.Millisecond, func() error {
		list := &v1alpha2.NginxOperatorList{}
		if err := m.admin.List(t.Context(), list); err != nil {
			return err
		}
		done := slices.DeleteFunc(list.Items, func(o v1alpha2.NginxOperator) bool { return o.Status.ObservedGeneration != o.Generation })
		if len(done) < migrated {
			return fmt.Errorf("only %d objects have a status", len(done))
		}
		return nil
	})
}

func newInstance(namespace, name string) *v1alpha2.NginxOperator {
	return &v1alpha2.NginxOperator{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

// newObject returns a v1alpha1 object.
func newObject(namespace, name string) *v1alpha1.NginxOperator {
	return &v1alpha1.NginxOperator{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

func storedName(i int) string { return fmt.Sprintf("web-%03d", i) }

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

// storeAsBefore makes the API server store v1alpha1, like the releases before 0.3.0.
func (m *migration) storeAsBefore(t *testing.T) {
	t.Helper()
	m.changeCRD(t, func(crd *apiextensionsv1.CustomResourceDefinition) {
		harness.SetStorageVersion(crd, "v1alpha1")
	})
}

// flip stores all objects at v1alpha1, like the releases before 0.3.0, and then makes the API
// server store v1alpha2. Between the two steps, it calls the given functions. It returns the
// objects as clients read them before the second step.
func (m *migration) flip(t *testing.T, between ...func()) map[string]map[string]any {
	t.Helper()
	m.storeAsBefore(t)
	await(t, func() error {
		stored := harness.Must1(harness.StoredVersions(t.Context(), m.etcd))(t)
		left := slices.DeleteFunc(slices.Sorted(maps.Keys(stored)), func(key string) bool {
			return stored[key] == v1alpha1.GroupVersion.String()
		})
		if len(left) == len(stored) {
			left = left[:1] // the API server may not have seen the change of the CRD yet
		}
		harness.Must(t, harness.InParallel(t.Context(), writers, len(left), func(ctx context.Context, i int) error {
			return m.touch(ctx, left[i])
		}))
		return m.allStored(t, "v1alpha1")
	})
	content := m.content(t)
	if len(content) != 2*migrated {
		t.Fatalf("%d objects at two versions, want %d", len(content), 2*migrated)
	}
	for _, do := range between {
		do()
	}
	m.storeAsDocumented(t)
	return content
}

// storeAsDocumented makes the API server store v1alpha2, with the command from
// docs/troubleshooting.md.
func (m *migration) storeAsDocumented(t *testing.T) {
	t.Helper()
	page := harness.Must1(os.ReadFile("../../../docs/troubleshooting.md"))(t)
	command := regexp.MustCompile(`(?s)kubectl patch crd nginxoperators\.operator\.example\.com .*?\]'`).Find(page)
	if command == nil {
		t.Fatal("docs/troubleshooting.md has no such command")
	}
	shell := exec.CommandContext(t.Context(), "bash", "-c", string(command)) //nolint:gosec // the documentation is the project's own
	shell.Env = append(os.Environ(), "KUBECONFIG="+m.adminKubeconfig, "PATH="+os.Getenv("KUBEBUILDER_ASSETS")+":"+os.Getenv("PATH"))
	if out, err := shell.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", command, err, out)
	}
}

// touch writes an unchanged object, given as namespace/name. If it is stored at another version,
// the API server stores it again.
func (m *migration) touch(ctx context.Context, key string) error {
	namespace, name, _ := strings.Cut(key, "/")
	return m.admin.Patch(ctx, newInstance(namespace, name), client.RawPatch(types.MergePatchType, []byte("{}")))
}

// allStored returns an error unless etcd contains all objects at one version, except for the given
// ones.
func (m *migration) allStored(t *testing.T, version string, except ...string) error {
	t.Helper()
	stored, err := harness.StoredVersions(t.Context(), m.etcd)
	if err != nil {
		return err
	}
	if len(stored) < migrated {
		return fmt.Errorf("only %d objects are stored", len(stored))
	}
	var others []string
	for key, apiVersion := range stored {
		if apiVersion != v1alpha2.GroupVersion.Group+"/"+version {
			others = append(others, key)
		}
	}
	slices.Sort(others)
	if !slices.Equal(others, except) {
		return fmt.Errorf("%d of %d objects are not stored at %s, want %v: %v",
			len(others), len(stored), version, except, others[:min(len(others), 5)])
	}
	return nil
}

// storedVersions returns an error unless status.storedVersions of the CRD contains exactly these
// versions.
func (m *migration) storedVersions(t *testing.T, want ...string) error {
	t.Helper()
	crd := harness.Must1(m.crd(t.Context()))(t)
	if got := slices.Sorted(slices.Values(crd.Status.StoredVersions)); !slices.Equal(got, want) {
		return fmt.Errorf("status.storedVersions is %v, want %v", got, want)
	}
	return nil
}

// content returns the objects in storedNamespace as clients read them, in both versions.
func (m *migration) content(t *testing.T) map[string]map[string]any {
	t.Helper()
	out := map[string]map[string]any{}
	for _, version := range []string{"v1alpha1", "v1alpha2"} {
		list := &unstructured.UnstructuredList{Object: map[string]any{
			"apiVersion": "operator.example.com/" + version, "kind": "NginxOperatorList",
		}}
		harness.Must(t, m.admin.List(t.Context(), list, client.InNamespace(storedNamespace)))
		for _, object := range list.Items {
			out[version+" "+object.GetName()] = map[string]any{
				"uid": object.GetUID(), "generation": object.GetGeneration(), "labels": object.GetLabels(),
				"annotations": object.GetAnnotations(), "spec": object.Object["spec"],
			}
		}
	}
	return out
}

// busy writes an object repeatedly until the returned function is called, like the clients and the
// operator in a larger cluster. The control plane's migrator waits for a change of an object or for
// a bookmark, which the API server sends only once a minute.
func (m *migration) busy(t *testing.T) (stop func()) {
	t.Helper()
	object := newInstance(busyNamespace, "busy")
	object.Spec.Paused = true
	harness.Must(t, client.IgnoreAlreadyExists(m.admin.Create(t.Context(), object)))
	ctx, cancel := context.WithCancel(t.Context())
	var done sync.WaitGroup
	done.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			labels := map[string]string{"written": strconv.Itoa(i)}
			patch := harness.Must1(json.Marshal(map[string]any{"metadata": map[string]any{"labels": labels}}))(t)
			// The write may fail while the test disables the conversion.
			_ = m.admin.Patch(ctx, newInstance(busyNamespace, "busy"), client.RawPatch(types.MergePatchType, patch))
			select {
			case <-ctx.Done():
			case <-time.After(200 * time.Millisecond):
			}
		}
	})
	stop = func() { cancel(); done.Wait() }
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

// metric returns the value of one of the leader's metrics.
func (m *migration) metric(t *testing.T, name string) float64 {
	t.Helper()
	if m.scraper == nil {
		m.scraper = harness.Must1(apiserver.NewScraper(t.Context(), m.admin, busyNamespace, harness.MetricsRole))(t)
	}
	metrics := harness.Must1(m.scraper.Scrape(t.Context(), m.operator.Metrics))(t)
	found := regexp.MustCompile("(?m)^" + regexp.QuoteMeta(name) + " (.*)$").FindStringSubmatch(metrics)
	if found == nil {
		t.Fatalf("no metric %s:\n%s", name, metrics)
	}
	return harness.Must1(strconv.ParseFloat(found[1], 64))(t)
}

// relay forwards connections to a Service and can cut it off. It forwards requests after a delay.
type relay struct {
	listener net.Listener
	target   string
	delay    atomic.Int64 // a time.Duration

	mu   sync.Mutex
	cut  bool
	open []net.Conn
}

func newRelay(t *testing.T, service *harness.Service) *relay {
	t.Helper()
	listener := harness.Must1(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { _ = listener.Close() })
	r := &relay{listener: listener, target: strings.TrimPrefix(service.URL(), "https://")}
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			go r.forward(connection)
		}
	}()
	return r
}

func (r *relay) url() string { return "https://" + r.listener.Addr().String() }

// set cuts the Service off or accepts new connections. It closes all open connections.
func (r *relay) set(cut bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, connection := range r.open {
		_ = connection.Close()
	}
	r.cut, r.open = cut, nil
}

func (r *relay) forward(from net.Conn) {
	defer func() { _ = from.Close() }()
	r.mu.Lock()
	cut := r.cut
	r.open = append(r.open, from)
	r.mu.Unlock()
	if cut {
		return
	}
	to, err := net.Dial("tcp", r.target)
	if err != nil {
		return
	}
	defer func() { _ = to.Close() }()
	go func() { _, _ = io.Copy(delayed{to, r}, from); _ = to.Close() }()
	_, _ = io.Copy(from, to)
}

// delayed is a connection to the Service, to which the relay writes after its delay.
type delayed struct {
	net.Conn
	relay *relay
}

func (d delayed) Write(request []byte) (int, error) {
	time.Sleep(time.Duration(d.relay.delay.Load()))
	return d.Conn.Write(request)
}
