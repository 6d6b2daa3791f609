package migration

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha1"
	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/wellknown"
	"github.com/example/nginx-operator/test/harness"
)

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
	m.awaitStatus(t, metav1.NamespaceAll, migrated)
}

// awaitStatus waits until a number of objects in a namespace have a status of their generation.
func (m *migration) awaitStatus(t *testing.T, namespace string, want int) {
	t.Helper()
	awaitEvery(t, 500*time.Millisecond, func() error {
		list := &v1alpha2.NginxOperatorList{}
		if err := m.admin.List(t.Context(), list, client.InNamespace(namespace)); err != nil {
			return err
		}
		done := slices.DeleteFunc(list.Items, func(o v1alpha2.NginxOperator) bool { return o.Status.ObservedGeneration != o.Generation })
		if len(done) < want {
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
		stored := harness.Must1(harness.StoredVersions(t.Context(), m.Etcd))(t)
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
// docs/troubleshooting/operator.md.
func (m *migration) storeAsDocumented(t *testing.T) {
	t.Helper()
	page := harness.Must1(os.ReadFile("../../../docs/troubleshooting/operator.md"))(t)
	command := regexp.MustCompile(`(?s)kubectl patch crd nginxoperators\.operator\.example\.com .*?\]'`).Find(page)
	if command == nil {
		t.Fatal("docs/troubleshooting/operator.md has no such command")
	}
	shell := exec.CommandContext(t.Context(), "bash", "-c", string(command)) //nolint:gosec // the documentation is the project's own
	shell.Env = append(os.Environ(), "KUBECONFIG="+m.AdminKubeconfig, "PATH="+os.Getenv("KUBEBUILDER_ASSETS")+":"+os.Getenv("PATH"))
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
	stored, err := harness.StoredVersions(t.Context(), m.Etcd)
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
