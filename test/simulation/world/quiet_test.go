package world

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/test/simulation/storage"
)

// TestForeignWrites verifies that a write of the operator to an object that no NginxOperator
// controls is a problem.
func TestForeignWrites(t *testing.T) {
	w := New(Release{}, 1)
	foreign, owned := ConfigMap("foreign", "key", "value"), ConfigMap("owned", "key", "value")
	owned.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: "operator.example.com/v1alpha2", Kind: "NginxOperator", Name: "web", UID: "1", Controller: ptr.To(true),
	}}
	w.Must(w.Write(foreign))
	w.Must(w.Write(owned))
	for name, want := range map[string]int{"foreign": 1, "owned": 0, "new": 0} {
		w.Problems = nil
		key := storage.Key{Resource: storage.ConfigMaps, Namespace: Namespace, Name: name}
		w.noteForeign(&storage.Request{Verb: "delete", Key: key})
		if len(w.Problems) != want {
			t.Errorf("%s: %v, want %d", name, w.Problems, want)
		}
	}
}
