package world

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/test/simulation/storage"
)

// Namespace is the namespace of all objects.
const Namespace = "shop"

func objectMeta(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}

// Meta returns the metadata of a new object in the namespace.
func Meta(name string) metav1.ObjectMeta { return objectMeta(Namespace, name) }

func keyOf(object client.Object) storage.Key {
	kind, err := apiutil.GVKForObject(object, knownTypes)
	if err != nil {
		panic(err)
	}
	of := storage.OfKind(kind.Kind)
	if of == nil {
		panic(fmt.Sprintf("the model has no %s", kind.Kind))
	}
	return storage.Key{Resource: of, Namespace: object.GetNamespace(), Name: object.GetName()}
}

// Get returns an object, and whether it exists.
func Get[T any, P storage.Typed[T]](w *World, of *storage.Resource, name string) (P, bool) {
	if found := w.Store.Get(storage.Key{Resource: of, Namespace: Namespace, Name: name}); found != nil {
		return storage.As[T, P](found), true
	}
	return new(T), false
}

// list returns all objects of a kind.
func list[T any, P storage.Typed[T]](w *World, of *storage.Resource) []P {
	var out []P
	for _, found := range w.Store.List(of, Namespace) {
		out = append(out, storage.As[T, P](found))
	}
	return out
}

// Instance returns an NginxOperator, which must exist.
func (w *World) Instance(name string) *v1alpha2.NginxOperator {
	out, found := Get[v1alpha2.NginxOperator](w, storage.NginxOperators, name)
	if !found {
		panic("no NginxOperator " + name)
	}
	return out
}

// Deployment returns a Deployment, or an empty one if it does not exist.
func (w *World) Deployment(name string) *appsv1.Deployment {
	out, _ := Get[appsv1.Deployment](w, storage.Deployments, name)
	return out
}

// ConfigMap returns a ConfigMap with one key.
func ConfigMap(name, key, value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: Meta(name), Data: map[string]string{key: value}}
}

// Write stores an object like a user: it creates the object, or replaces its spec or content.
func (w *World) Write(object client.Object) error {
	key := keyOf(object)
	w.noteInput(key.Resource)
	if live := w.Store.Get(key); live != nil {
		content := storage.ToMap(object)
		(&unstructured.Unstructured{Object: content}).SetResourceVersion(live.Meta().GetResourceVersion())
		_, err := w.Store.Update(key, content, "")
		return err
	}
	return w.Create(object)
}

// noteInput counts a user's write of an object other than an NginxOperator.
func (w *World) noteInput(of *storage.Resource) {
	if of != storage.NginxOperators {
		w.Inputs++
	}
}

// Create stores a new object like a user.
func (w *World) Create(object client.Object) error {
	_, err := w.Store.Create(keyOf(object), storage.ToMap(object))
	return err
}

// Remove deletes an object like a user, if the object exists.
func (w *World) Remove(of *storage.Resource, name string) {
	if key := (storage.Key{Resource: of, Namespace: Namespace, Name: name}); w.Store.Get(key) != nil {
		w.noteInput(of)
		_, err := w.Store.Delete(key, storage.DeleteOptions{})
		w.Must(err)
	}
}
