package integration

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/example/nginx-operator/test/harness"
)

// TestSchemaRefuses verifies that the schema rejects invalid input with a message that names the
// field.
func TestSchemaRefuses(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	for name, test := range map[string]struct{ name, spec, want string }{
		"port 0":                  {"web", "port: 0", "spec.port: Invalid value: 0: spec.port in body should be greater than or equal to 1"},
		"port 65536":              {"web", "port: 65536", "spec.port"},
		"port that is text":       {"web", "port: http", `spec.port: Invalid value: "string"`},
		"port that is a fraction": {"web", "port: 80.5", "spec.port"},
		"negative replicas":       {"web", "replicas: -1", "spec.replicas"},
		"1001 replicas":           {"web", "replicas: 1001", "spec.replicas"},
		"long forceRedeploy":      {"web", "forceRedeploy: " + strings.Repeat("x", 257), "spec.forceRedeploy"},
		"unknown field":           {"web", "prot: 80", `unknown field "spec.prot"`},
		"name with a dot":         {"web.example", "{}", "metadata.name must be a DNS label"},
		"name with a digit first": {"1web", "{}", "metadata.name must be a DNS label"},
		"name of 64 characters":   {strings.Repeat("w", 64), "{}", "metadata.name must be a DNS label"},
	} {
		t.Run(name, func(t *testing.T) {
			err := createStrictly(t, namespace, test.name, test.spec)
			if !harness.Says(err, test.want) {
				t.Errorf("want a refusal with %q, got: %v", test.want, err)
			}
		})
	}
}

// TestSchemaTakesTheBounds verifies that the bounds themselves are valid, and so is an empty spec.
func TestSchemaTakesTheBounds(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	for i, spec := range []string{
		"port: 1", "port: 65535", "replicas: 0", "replicas: 1000", "forceRedeploy: " + strings.Repeat("x", 256), "{}",
	} {
		name := fmt.Sprintf("web-%d", i)
		if i == 0 {
			name = strings.Repeat("w", 63)
		}
		if err := createStrictly(t, namespace, name, spec); err != nil {
			t.Errorf("%s: %v", spec, err)
		}
	}
	waitForChildren(t, namespace, strings.Repeat("w", 63))
}

// createStrictly creates an object from YAML like kubectl, which asks the API server to reject
// unknown fields.
func createStrictly(t *testing.T, namespace, name, spec string) error {
	t.Helper()
	object := &unstructured.Unstructured{}
	must(t, yaml.Unmarshal([]byte("apiVersion: operator.example.com/v1alpha1\nkind: NginxOperator\nspec:\n  "+spec), &object.Object))
	object.SetNamespace(namespace)
	object.SetName(name)
	strict := client.WithFieldValidation(suite.admin, "Strict")
	return strict.Create(t.Context(), object)
}
