package storage

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func newClient(t *testing.T) (*Store, client.Client) {
	t.Helper()
	store := New()
	out, err := client.New(Config(Direct(store)), client.Options{Scheme: clientgoscheme.Scheme, Mapper: Mapper()})
	if err != nil {
		t.Fatal(err)
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}
	if err := out.Create(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	return store, out
}

func configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Data: map[string]string{"a": "1"}}
}

// TestResourceVersions verifies that a write without a change retains the resource version, and
// that a write from an old version is a conflict.
func TestResourceVersions(t *testing.T) {
	_, api := newClient(t)
	first := configMap("a")
	if err := api.Create(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	same := first.DeepCopy()
	if err := api.Update(t.Context(), same); err != nil || same.ResourceVersion != first.ResourceVersion {
		t.Errorf("version %s, want %s; error %v", same.ResourceVersion, first.ResourceVersion, err)
	}
	changed := first.DeepCopy()
	changed.Data["a"] = "2"
	if err := api.Update(t.Context(), changed); err != nil || changed.ResourceVersion == first.ResourceVersion {
		t.Errorf("version %s, error %v", changed.ResourceVersion, err)
	}
	first.Data["a"] = "3"
	if err := api.Update(t.Context(), first); !apierrors.IsConflict(err) {
		t.Errorf("error %v, want a conflict", err)
	}
	if err := api.Create(t.Context(), configMap("a")); !apierrors.IsAlreadyExists(err) {
		t.Errorf("error %v, want that it exists", err)
	}
}

// TestGarbageCollect verifies that dependents are deleted when their last owner is gone, including
// the dependents of dependents.
func TestGarbageCollect(t *testing.T) {
	store, api := newClient(t)
	owner := configMap("owner")
	if err := api.Create(t.Context(), owner); err != nil {
		t.Fatal(err)
	}
	owned := configMap("owned")
	owned.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "owner", UID: owner.UID}}
	if err := api.Create(t.Context(), owned); err != nil {
		t.Fatal(err)
	}
	below := configMap("below")
	below.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "owned", UID: owned.UID}}
	if err := api.Create(t.Context(), below); err != nil {
		t.Fatal(err)
	}
	if got := store.GarbageCollect(); len(got) != 0 {
		t.Errorf("collected %v while the owner exists", got)
	}
	if err := api.Delete(t.Context(), owner); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, key := range store.GarbageCollect() {
		got = append(got, key.Name)
	}
	if !slices.Equal(got, []string{"owned", "below"}) {
		t.Errorf("collected %v", got)
	}
}

// TestListAt verifies that a list at an earlier resource version has the objects of that time.
func TestListAt(t *testing.T) {
	store, api := newClient(t)
	for _, name := range []string{"a", "b"} {
		if err := api.Create(t.Context(), configMap(name)); err != nil {
			t.Fatal(err)
		}
	}
	before := store.Revision()
	if err := api.Delete(t.Context(), configMap("a")); err != nil {
		t.Fatal(err)
	}
	if got := len(store.ListAt(ConfigMaps, "shop", before)); got != 2 {
		t.Errorf("%d objects at %d, want 2", got, before)
	}
	if got := len(store.List(ConfigMaps, "shop")); got != 1 {
		t.Errorf("%d objects, want 1", got)
	}
}

// TestCustomResource verifies that writes of NginxOperators get the schema's defaults, and must
// comply with its CEL rules.
func TestCustomResource(t *testing.T) {
	store, _ := newClient(t)
	key := Key{NginxOperators, "shop", "web"}
	object := func(spec map[string]any) map[string]any {
		return map[string]any{"metadata": map[string]any{"name": "web"}, "spec": spec}
	}
	_, err := store.Create(key, object(map[string]any{"replicas": int64(-1)}), Options{Manager: "user"})
	if !apierrors.IsInvalid(err) {
		t.Errorf("error %v, want that replicas are invalid", err)
	}
	both := map[string]any{"config": map[string]any{"inline": "a", "configMapRef": map[string]any{"name": "b"}}}
	if _, err = store.Create(key, object(both), Options{Manager: "user"}); !apierrors.IsInvalid(err) {
		t.Errorf("error %v, want that the rule for config refuses both", err)
	}
	created, err := store.Create(key, object(map[string]any{"unknown": "x"}), Options{Manager: "user"})
	if err != nil {
		t.Fatal(err)
	}
	replicas, _, _ := unstructured.NestedInt64(created.Object, "spec", "replicas")
	if _, found, _ := unstructured.NestedString(created.Object, "spec", "unknown"); found || replicas != 1 {
		t.Errorf("stored %s", created.Raw)
	}
}
