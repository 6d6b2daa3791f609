package world

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	kind, err := apiutil.GVKForObject(object, scheme)
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
func Get[T any, P interface {
	*T
	client.Object
}](w *World, of *storage.Resource, name string) (P, bool) {
	out := P(new(T))
	found := w.Store.Get(storage.Key{Resource: of, Namespace: Namespace, Name: name})
	if found != nil {
		found.As(out)
	}
	return out, found != nil
}

// List returns all objects of a kind.
func List[T any, P interface {
	*T
	client.Object
}](w *World, of *storage.Resource) []P {
	var out []P
	for _, found := range w.Store.List(of, Namespace) {
		object := P(new(T))
		found.As(object)
		out = append(out, object)
	}
	return out
}

// Instance returns a NginxOperator, which must exist.
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

// Change changes a NginxOperator like a user.
func (w *World) Change(name string, change func(*v1alpha2.NginxOperator)) error {
	object := w.Instance(name)
	change(object)
	return w.Write(object)
}

// ConfigMap returns a ConfigMap with one key.
func ConfigMap(name, key, value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: Meta(name), Data: map[string]string{key: value}}
}

// IsReady reports whether the current generation of a NginxOperator is ready.
func IsReady(object *v1alpha2.NginxOperator) bool {
	ready := meta.FindStatusCondition(object.Status.Conditions, v1alpha2.ConditionReady)
	return ready != nil && ready.Status == metav1.ConditionTrue && ready.ObservedGeneration == object.Generation
}

// Input decodes a ConfigMap or a Secret. It returns nil for any other kind.
func Input(found *storage.Version) client.Object {
	var out client.Object
	switch found.Resource {
	case storage.ConfigMaps:
		out = &corev1.ConfigMap{}
	case storage.Secrets:
		out = &corev1.Secret{}
	default:
		return nil
	}
	found.As(out)
	return out
}

// Write stores an object like a user: it creates the object, or replaces its spec or content.
func (w *World) Write(object client.Object) error {
	key := keyOf(object)
	w.noteInput(key.Resource)
	if live := w.Store.Get(key); live != nil {
		content := storage.ToMap(object)
		metadata := content["metadata"].(map[string]any)
		delete(metadata, "resourceVersion")
		metadata["resourceVersion"] = live.Object["metadata"].(map[string]any)["resourceVersion"]
		_, err := w.Store.Update(key, content, storage.Options{Manager: User})
		return err
	}
	return w.Create(object)
}

// noteInput counts a user's write of an object other than a NginxOperator.
func (w *World) noteInput(of *storage.Resource) {
	if of != storage.NginxOperators {
		w.Inputs++
	}
}

// Create stores a new object like a user.
func (w *World) Create(object client.Object) error {
	_, err := w.Store.Create(keyOf(object), storage.ToMap(object), storage.Options{Manager: User})
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
