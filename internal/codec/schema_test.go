package codec

import (
	"os"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/example/nginx-operator/internal/schema/schematest"
	"github.com/example/nginx-operator/pkg/bounds"
)

// TestSchemaBoundsQuantities verifies that the schema bounds each quantity with the pattern and the
// length of package bounds, and not with a rule in CEL, which API servers before Kubernetes 1.34
// reject as too expensive.
func TestSchemaBoundsQuantities(t *testing.T) {
	raw, err := os.ReadFile("../../bundle/manifests/operator.example.com_nginxoperators.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(raw, &crd); err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, version := range crd.Spec.Versions {
		schematest.Each(version.Schema.OpenAPIV3Schema, version.Name, func(path string, schema *apiextensionsv1.JSONSchemaProps) {
			if !schema.XIntOrString || schema.Pattern == "" {
				return
			}
			found++
			if length := ptr.Deref(schema.MaxLength, 0); schema.Pattern != bounds.QuantityPattern || length != bounds.MaxQuantityLength {
				t.Errorf("%s: bound the quantity in config/crd/quantities.yaml: pattern %q, maxLength %d", path, schema.Pattern, length)
			}
			if len(schema.XValidations) > 0 {
				t.Errorf("%s: the quantity has rules in CEL: %v", path, schema.XValidations)
			}
		})
	}
	if found < 9 {
		t.Errorf("found %d quantities in the schema", found)
	}
}
