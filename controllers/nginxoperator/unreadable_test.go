package nginxoperator

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/example/nginx-operator/api/v1alpha2"
)

// TestUnreadablePatches verifies that the status of an unreadable object is written only to that
// object, and retains its fields other than conditions and observedGeneration.
func TestUnreadablePatches(t *testing.T) {
	object := &v1alpha2.NginxOperator{ObjectMeta: metav1.ObjectMeta{UID: "u-1", Generation: 7}}
	conditions := []metav1.Condition{{Type: "Ready", Status: metav1.ConditionFalse}}
	whole, err := unreadablePatches(object, conditions)
	if err != nil || len(whole) != 1 {
		t.Fatalf("%s for a status that cannot be read, %v", whole, err)
	}
	object.Status.URL = "http://web"
	patches, err := unreadablePatches(object, conditions)
	if err != nil || len(patches) != 2 || string(patches[1]) != string(whole[0]) {
		t.Fatalf("%s, %v", patches, err)
	}
	const condition = `{"type":"Ready","status":"False","lastTransitionTime":null,"reason":"","message":""}`
	const written = `"observedGeneration":7,"conditions":[` + condition + "]"
	for name, test := range map[string]struct{ stored, want string }{
		"a status":         {`{"metadata":{"uid":"u-1"},"status":{"url":"http://web","conditions":[]}}`, `{"url":"http://web",` + written + "}"},
		"an empty one":     {`{"metadata":{"uid":"u-1"},"status":{}}`, "{" + written + "}"},
		"none":             {`{"metadata":{"uid":"u-1"},"spec":{}}`, "{" + written + "}"},
		"null":             {`{"metadata":{"uid":"u-1"},"status":null}`, "{" + written + "}"},
		"a text":           {`{"metadata":{"uid":"u-1"},"status":"x"}`, "{" + written + "}"},
		"a later object":   {`{"metadata":{"uid":"u-2"},"status":{"url":"http://web"}}`, ""},
		"one without UID":  {`{"metadata":{},"status":{}}`, ""},
		"one of no status": {`{"metadata":{"uid":"u-2"}}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var got []byte
			for _, raw := range patches {
				patch, err := jsonpatch.DecodePatch(raw)
				if err != nil {
					t.Fatal(err)
				}
				if got, err = patch.Apply([]byte(test.stored)); err == nil {
					break
				}
			}
			if test.want == "" {
				if got != nil {
					t.Errorf("written to another object: %s", got)
				}
				return
			}
			var document struct{ Status any }
			var want any
			if err := errors.Join(json.Unmarshal(got, &document), json.Unmarshal([]byte(test.want), &want)); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, document.Status); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
