package world

import (
	"math/rand/v2"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/api/v1alpha1"
	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/conversion"
	"github.com/example/nginx-operator/test/simulation/storage"
)

// Action is an action of a user or of the cluster in one step.
type Action struct {
	Name string
	Do   func(w *World, r *rand.Rand)
}

// Names has the names of the instances of a seed.
var Names = []string{"a", "b", "c"}

func someName(r *rand.Rand) string { return Names[r.IntN(len(Names))] }

// Actions returns all actions that a step can have.
func Actions() []Action {
	out := append(specActions(), objectActions()...)
	out = append(out, clusterActions()...)
	return append(out, stories()...)
}

// Furnish creates the referenced ConfigMaps and Secrets, a ConfigMap of a user, and the instances.
func (w *World) Furnish(r *rand.Rand) {
	w.Must(w.Write(ConfigMap("conf", "nginx.conf", server("return 200;"))))
	w.Must(w.Write(ConfigMap("pages", "index.html", "first")))
	w.Must(w.Write(token()))
	w.RenewCertificate()
	foreign := ConfigMap("a-foreign", "owner", "a user")
	foreign.Labels = map[string]string{"app.kubernetes.io/instance": "a", "app.kubernetes.io/managed-by": "nginx-operator"}
	w.Must(w.Write(foreign))
	for _, name := range Names {
		w.Edit(name, func(spec *v1alpha2.NginxOperatorSpec) { spec.Replicas = ptr.To(1 + r.Int32N(2)) })
	}
}

// change returns an action that changes the spec of a random instance, or creates the instance.
func change(name string, of func(*v1alpha2.NginxOperatorSpec, *rand.Rand)) Action {
	return Action{name, func(w *World, r *rand.Rand) {
		w.Edit(someName(r), func(spec *v1alpha2.NginxOperatorSpec) { of(spec, r) })
	}}
}

// Edit changes the spec of an instance like a user, or creates the instance. A change that the API
// server rejects has no effect.
func (w *World) Edit(name string, change func(*v1alpha2.NginxOperatorSpec)) {
	instance := &v1alpha2.NginxOperator{ObjectMeta: Meta(name)}
	if w.Store.Get(keyOf(instance)) != nil {
		instance = w.Instance(name)
	}
	change(&instance.Spec)
	if err := w.Write(instance); err != nil && !apierrors.IsInvalid(err) {
		panic(err)
	}
}

// editOld changes the spec of an instance through API version v1alpha1, if the instance exists.
func (w *World) editOld(name string, change func(*v1alpha1.NginxOperatorSpec)) {
	found := w.Store.Get(storage.Key{Resource: storage.NginxOperators, Namespace: Namespace, Name: name})
	if found == nil {
		return
	}
	old := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(found.Object)}
	conversion.ToV1alpha1(old)
	typed := &v1alpha1.NginxOperator{}
	w.Must(runtime.DefaultUnstructuredConverter.FromUnstructured(old.Object, typed))
	change(&typed.Spec)
	changed := &unstructured.Unstructured{Object: storage.ToMap(typed)}
	changed.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("NginxOperator"))
	conversion.ToV1alpha2(changed)
	_, err := w.Store.Update(found.Key, changed.Object, "")
	if err != nil && !apierrors.IsInvalid(err) {
		panic(err)
	}
}
