package objectcache

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/codec"
)

// TestEventsAreDecoded verifies that an object of a watch is decoded in the same way with its
// fields in any order, even with an unreadable value, and that an error remains an error.
func TestEventsAreDecoded(t *testing.T) {
	t.Parallel()
	negotiator := runtime.NewClientNegotiator(newDirectly(newLenientScheme()), v1alpha2.GroupVersion)
	decoder, _, _, err := negotiator.StreamDecoder(runtime.ContentTypeJSON, nil)
	if err != nil {
		t.Fatal(err)
	}
	decode := func(text string) runtime.Object {
		t.Helper()
		object, err := runtime.Decode(decoder, []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return object
	}
	const version, kind = `"apiVersion":"operator.example.com/v1alpha2"`, `"kind":"NginxOperator"`
	for name, test := range map[string]struct {
		rest       string
		unreadable bool
		replicas   int32
	}{
		"readable":   {rest: `"metadata":{"namespace":"shop","name":"web","generation":3},"spec":{"replicas":2}`, replicas: 2},
		"unreadable": {rest: `"metadata":{"namespace":"shop","name":"web","generation":3},"spec":{"replicas":"two"}`, unreadable: true},
	} {
		direct := decode("{" + version + "," + kind + "," + test.rest + "}").(*lenient)
		usual := decode("{" + kind + "," + version + "," + test.rest + "}").(*lenient)
		if diff := cmp.Diff(usual.NginxOperator, direct.NginxOperator); diff != "" {
			t.Errorf("%s (-usual +direct):\n%s", name, diff)
		}
		_, unreadable := codec.Unreadable(&direct.NginxOperator)
		if direct.Name != "web" || direct.Generation != 3 || unreadable != test.unreadable ||
			!test.unreadable && *direct.Spec.Replicas != test.replicas {
			t.Errorf("%s: decoded %+v", name, direct.NginxOperator)
		}
	}
	status, ok := decode(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired"}`).(*metav1.Status)
	if !ok || status.Reason != metav1.StatusReasonExpired {
		t.Errorf("decoded %+v", status)
	}
}
