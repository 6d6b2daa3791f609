package integration

import (
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/examples/test/refusal"
)

// Bad input never gets in, and whoever wrote it is told which field it is and what to write instead: the tables of all
// examples, on the API server and with its webhooks.
func TestRefused(t *testing.T) {
	tables, err := filepath.Glob("../../*/testdata/refused")
	must(t, err)
	if len(tables) < 4 {
		t.Errorf("%d tables for four kinds", len(tables))
	}
	namespace := newNamespace(t)
	// As kubectl does, which asks the API server to refuse unknown fields.
	strict := client.WithFieldValidation(suite.admin, "Strict")
	for _, table := range tables {
		manifests, err := refusal.Read(table)
		must(t, err)
		for _, manifest := range manifests {
			t.Run(manifest.Object.GetKind()+"/"+manifest.Name, func(t *testing.T) {
				if namespaced, err := suite.admin.IsObjectNamespaced(manifest.Object); err != nil {
					t.Fatal(err)
				} else if namespaced {
					manifest.Object.SetNamespace(namespace)
				}
				if err := strict.Create(t.Context(), manifest.Object); err == nil || !strings.Contains(err.Error(), manifest.Want) {
					t.Errorf("want a refusal with %q, got: %v", manifest.Want, err)
				}
			})
		}
	}
}
