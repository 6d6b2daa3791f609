package world

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/test/simulation/storage"
)

// TestForeignWrites verifies that a write of the operator to an object that no NginxOperator
// controls is a problem. The exception is a patch of the owner references of an object with the
// operator's record.
func TestForeignWrites(t *testing.T) {
	w := New(Release{}, 1)
	foreign, owned, orphan := ConfigMap("foreign", "key", "value"), ConfigMap("owned", "key", "value"), ConfigMap("orphan", "key", "value")
	owned.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: "operator.example.com/v1alpha2", Kind: "NginxOperator", Name: "web", UID: "1", Controller: ptr.To(true),
	}}
	orphan.Annotations = map[string]string{"operator.example.com/last-declared": "{}"}
	for _, object := range []*corev1.ConfigMap{foreign, owned, orphan} {
		w.Must(w.Write(object))
	}
	const (
		adoption      = `{"metadata":{"resourceVersion":"3","ownerReferences":[]}}`
		more          = `{"metadata":{"resourceVersion":"3","ownerReferences":[]},"data":{"key":"other"}}`
		unconditional = `{"metadata":{"ownerReferences":[]}}`
	)
	for _, test := range []struct {
		name, verb, body string
		want             int
	}{
		{"foreign", "delete", "", 1},
		{"foreign", "patch", adoption, 1},
		{"owned", "delete", "", 0},
		{"new", "delete", "", 0},
		{"orphan", "delete", "", 1},
		{"orphan", "patch", more, 1},
		{"orphan", "patch", unconditional, 1},
		{"orphan", "patch", adoption, 0},
	} {
		w.Problems = nil
		key := storage.Key{Resource: storage.ConfigMaps, Namespace: Namespace, Name: test.name}
		w.noteForeign(&storage.Request{Verb: test.verb, Key: key, Body: []byte(test.body)})
		if len(w.Problems) != test.want {
			t.Errorf("%+v: %v", test, w.Problems)
		}
	}
}
