package v1_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/example/nginx-operator/examples/test/refusal"
)

const definition = "../../../config/crd/ego.example.com_activities.yaml"

// What the schema takes and refuses, and what a user is told.
func TestSchema(t *testing.T) { refusal.Test(t, definition, "../..") }

// What is run once is not changed. The same again is no change, and neither is metadata.
func TestSpecIsImmutable(t *testing.T) {
	schema, err := refusal.Load(definition)
	if err != nil {
		t.Fatal(err)
	}
	old := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "ego.example.com/v1", "kind": "Activity", "metadata": map[string]any{"name": "a"},
		"spec": map[string]any{"command": "true", "envs": []any{"A=1"}},
	}}
	same := old.DeepCopy()
	same.SetLabels(map[string]string{"a": "b"})
	if err := schema.Update(same, old); err != nil {
		t.Errorf("a label was refused: %v", err)
	}
	for field, value := range map[string]any{"command": "false", "host": "node-1", "execuser": "0", "execcwd": "/tmp", "envs": []any{"A=2"}} {
		changed := old.DeepCopy()
		changed.Object["spec"].(map[string]any)[field] = value
		err := schema.Update(changed, old)
		if err == nil || !strings.Contains(err.Error(), "spec: Invalid value: an Activity runs once, so its spec cannot be changed; create another Activity") {
			t.Errorf("another %s: %v", field, err)
		}
	}
}
