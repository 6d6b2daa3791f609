// Package schema validates specs with the schema of the CRD, as the API server does for writes at
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
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/config/crd"
)

const (
	// maxErrors bounds the returned violations, without the error that there may be more. A list of
	// thousands of invalid elements has as many violations.
	maxErrors = 32
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

// compiled is the schema with what validates it.
type compiled struct {
	structural *structuralschema.Structural
	types      validation.SchemaValidator
	rules      *cel.Validator
}

// compile compiles the schema and its CEL rules, which takes a tenth of a second and 6 MiB.
var compile = sync.OnceValues(func() (compiled, error) {
	schema, err := properties()
	if err != nil {
		return compiled{}, err
	}
	structural, err := structuralschema.NewStructural(schema)
	if err != nil {
		return compiled{}, err
	}
	types, _, err := validation.NewSchemaValidator(schema)
	return compiled{structural, types, cel.NewValidator(structural, false, celconfig.PerCallLimit)}, err
})

// Violations returns the violations of types, bounds, enums, patterns, required fields, keys of
// lists, and CEL rules. It does not evaluate rules that compare a spec with the stored one. The
// spec must be within the bounds of package bounds. A null counts as an absent field, and absent
// fields have their default.
func Violations(spec map[string]any, path *field.Path) field.ErrorList {
	schema, err := compile()
	if err != nil {
		return field.ErrorList{field.InternalError(path, err)}
	}
	if err := tooMany(spec, path); err != nil {
		return field.ErrorList{err, incomplete(path)}
	}
	object := withoutNulls(spec).(map[string]any)
	defaulting.Default(object, schema.structural)
	errs := validation.ValidateCustomResource(path, object, schema.types)
	errs = append(errs, listtype.ValidateListSetsAndMaps(path, schema.structural, object)...)
	broken, budget := schema.rules.Validate(context.Background(), path, schema.structural, object, nil, maxCost)
	if errs = append(errs, broken...); budget < 0 || len(errs) > maxErrors {
		return append(errs[:min(len(errs), maxErrors)], incomplete(path))
	}
	return errs
}

// incomplete returns the error of a spec whose other violations are unknown. It is an error of the
// whole spec, so any change is a new value (package ratchet).
func incomplete(path *field.Path) *field.Error {
	return field.Invalid(path, field.OmitValueType{}, "may have more errors; correct these first")
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
