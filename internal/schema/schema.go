// Package schema validates specs with the schema of the CRD. The API server does so for writes at
// v1alpha2. In a write at v1alpha1, it validates only the annotation's type, and the annotation's
// content becomes most of the spec at v1alpha2.
package schema

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/config/crd"
)

const (
	// MaxErrors bounds the returned violations. A list of thousands of invalid elements has as many
	// violations.
	MaxErrors = 32
	// maxValues bounds the evaluated values of a spec. Together with the schema's bounds on lists,
	// it allows every valid spec. The time of the validator grows with the square of the number of
	// violations.
	maxValues = 4_096
	// maxCost bounds the cost of the CEL rules for one spec, in CEL units. It is a tenth of the API
	// server's limit.
	maxCost = celconfig.RuntimeCELCostBudget / 10
)

// properties is the schema of a v1alpha2 spec.
var properties = sync.OnceValues(func() (*apiextensions.JSONSchemaProps, error) {
	definition := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.Unmarshal(crd.NginxOperators, definition); err != nil {
		return nil, fmt.Errorf("failed to read the CRD: %w", err)
	}
	for _, version := range definition.Spec.Versions {
		if version.Name != v1alpha2.GroupVersion.Version {
			continue
		}
		spec := version.Schema.OpenAPIV3Schema.Properties["spec"]
		out := &apiextensions.JSONSchemaProps{}
		return out, apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(&spec, out, nil)
	}
	return nil, fmt.Errorf("the CRD has no version %s", v1alpha2.GroupVersion.Version)
})

// types validates types, bounds, enums, patterns, and required fields.
var types = sync.OnceValues(func() (validation.SchemaValidator, error) {
	schema, err := properties()
	if err != nil {
		return nil, err
	}
	out, _, err := validation.NewSchemaValidator(schema)
	return out, err
})

// compiled is the schema with its CEL rules.
type compiled struct {
	structural *structuralschema.Structural
	validator  *cel.Validator
}

// rules compiles the CEL rules, which takes a tenth of a second and 5 MiB.
var rules = sync.OnceValues(func() (compiled, error) {
	schema, err := properties()
	if err != nil {
		return compiled{}, err
	}
	structural, err := structuralschema.NewStructural(schema)
	if err != nil {
		return compiled{}, err
	}
	return compiled{structural, cel.NewValidator(structural, false, celconfig.PerCallLimit)}, nil
})

// Violations returns the violations of types, bounds, enums, patterns, and required fields. It does
// not evaluate CEL rules. The spec must be within the bounds of package bounds. A null counts as an
// absent field.
func Violations(spec map[string]any, path *field.Path) field.ErrorList {
	validator, err := types()
	if err != nil {
		return field.ErrorList{field.InternalError(path, err)}
	}
	if err := tooMany(spec, path); err != nil {
		return field.ErrorList{err}
	}
	return first(validation.ValidateCustomResource(path, withoutNulls(spec), validator))
}

// tooMany returns an error if a list has more elements than the schema allows, or if the spec has
// too many values. Otherwise it returns nil.
func tooMany(spec map[string]any, path *field.Path) *field.Error {
	schema, err := properties()
	if err != nil {
		return field.InternalError(path, err)
	}
	values := 0
	if err := longList(spec, schema, path, &values); err != nil {
		return err
	}
	if values > maxValues {
		return field.TooMany(path, values, maxValues)
	}
	return nil
}

// longList returns an error for the first list of a value that is longer than its schema allows. It
// adds the number of visited values to values.
func longList(value any, schema *apiextensions.JSONSchemaProps, path *field.Path, values *int) *field.Error {
	if *values++; *values > maxValues {
		return nil
	}
	switch value := value.(type) {
	case map[string]any:
		for name, inner := range value {
			below := &apiextensions.JSONSchemaProps{}
			if property, found := schema.Properties[name]; found {
				below = &property
			} else if schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil {
				below = schema.AdditionalProperties.Schema
			}
			if err := longList(inner, below, path.Child(name), values); err != nil {
				return err
			}
		}
	case []any:
		if schema.MaxItems != nil && int64(len(value)) > *schema.MaxItems {
			return field.TooMany(path, len(value), int(*schema.MaxItems))
		}
		below := &apiextensions.JSONSchemaProps{}
		if schema.Items != nil && schema.Items.Schema != nil {
			below = schema.Items.Schema
		}
		for i, inner := range value {
			if err := longList(inner, below, path.Index(i), values); err != nil {
				return err
			}
		}
	}
	return nil
}

// AllViolations returns the violations of the whole schema, including CEL rules.
func AllViolations(ctx context.Context, spec map[string]any, path *field.Path) field.ErrorList {
	if errs := Violations(spec, path); len(errs) > 0 {
		return errs // CEL rules require valid types and bounds
	}
	with, err := rules()
	if err != nil {
		return field.ErrorList{field.InternalError(path, err)}
	}
	errs, _ := with.validator.Validate(ctx, path, with.structural, withoutNulls(spec), nil, maxCost)
	return first(errs)
}

func first(errs field.ErrorList) field.ErrorList { return errs[:min(len(errs), MaxErrors)] }

// withoutNulls returns a copy of a value without null fields. Required fields of Go types encode as
// null if they are empty.
func withoutNulls(value any) any {
	switch value := value.(type) {
	case map[string]any:
		out := make(map[string]any, len(value))
		for name, inner := range value {
			if inner != nil {
				out[name] = withoutNulls(inner)
			}
		}
		return out
	case []any:
		out := make([]any, len(value))
		for i := range value {
			out[i] = withoutNulls(value[i])
		}
		return out
	}
	return value
}
