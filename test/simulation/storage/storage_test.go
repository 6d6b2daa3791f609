package storage

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// newStore returns a storage with a namespace, and a function that creates an object in it.
func newStore(t *testing.T) (*Store, func(of *Resource, name string, object map[string]any) (*Version, error)) {
	t.Helper()
	store := New()
	if _, err := store.Create(Key{Namespaces, "", "shop"}, map[string]any{}); err != nil {
		t.Fatal(err)
	}
	return store, func(of *Resource, name string, object map[string]any) (*Version, error) {
		return store.Create(Key{of, "shop", name}, object)
	}
}

// TestListAt verifies that a list at an earlier resource version has the objects of that time.
func TestListAt(t *testing.T) {
	store, create := newStore(t)
	for _, name := range []string{"a", "b"} {
		if _, err := create(ConfigMaps, name, map[string]any{}); err != nil {
			t.Fatal(err)
		}
	}
	before := store.Revision()
	if _, err := store.Delete(Key{ConfigMaps, "shop", "a"}, DeleteOptions{}); err != nil {
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
	_, create := newStore(t)
	for name, invalid := range map[string]map[string]any{
		"replicas": {"replicas": int64(-1)},
		"config":   {"config": map[string]any{"inline": "a", "configMapRef": map[string]any{"name": "b"}}},
	} {
		if _, err := create(NginxOperators, name, map[string]any{"spec": invalid}); !apierrors.IsInvalid(err) {
			t.Errorf("%s: error %v, want that it is invalid", name, err)
		}
	}
	created, err := create(NginxOperators, "web", map[string]any{"spec": map[string]any{"unknown": "x"}})
	if err != nil {
		t.Fatal(err)
	}
	replicas, _, _ := unstructured.NestedInt64(created.Object, "spec", "replicas")
	if _, found, _ := unstructured.NestedString(created.Object, "spec", "unknown"); found || replicas != 1 {
		t.Errorf("stored %s", created.Raw)
	}
}
