// Package schema validates specs with the schema of the CRD, as the API server does for writes at
// v1alpha2. In a write at v1alpha1, it validates only the annotation's type, and the annotation's
// content becomes most of the spec at v1alpha2.
package schema

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/config/crd"
)

const (
	// maxErrors bounds the violations. A list of thousands of invalid elements has as many.
	maxErrors = 32
	// maxValues bounds the evaluated values of a spec. Together with the schema's bounds on lists,
	// it allows every valid spec. The time of the validator grows with the square of the number of
	// violations.
	maxValues = 4_096
	// maxCost bounds the CEL rules of a spec, at a tenth of the API server's limit.
	maxCost = celconfig.RuntimeCELCostBudget / 10
)

type compiled struct {
	structural *structuralschema.Structural
	types      validation.SchemaValidator
	rules      *cel.Validator
}

// compile compiles the schema and its CEL rules, which takes a tenth of a second and 6 MiB.
var compile = sync.OnceValues(func() (compiled, error) {
	definition := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.Unmarshal(crd.NginxOperators, definition); err != nil {
		return compiled{}, fmt.Errorf("failed to read the CRD: %w", err)
	}

	var spec apiextensionsv1.JSONSchemaProps
	for _, version := range definition.Spec.Versions {
		if version.Name == v1alpha2.GroupVersion.Version {
			spec = version.Schema.OpenAPIV3Schema.Properties["spec"]
		}
	}

	schema := &apiextensions.JSONSchemaProps{}
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(&spec, schema, nil); err != nil {
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
	if err := tooMany(spec, schema.structural, path); err != nil {
		return field.ErrorList{err, incomplete(path)}
	}

	object := map[string]any{}
	maps.Copy(object, runtime.DeepCopyJSON(spec))
	defaulting.PruneNonNullableNullsWithoutDefaults(object, schema.structural)
	defaulting.Default(object, schema.structural)

	errs := validation.ValidateCustomResource(path, object, schema.types)
	errs = append(errs, listtype.ValidateListSetsAndMaps(path, schema.structural, object)...)
	broken, budget := schema.rules.Validate(context.Background(), path, schema.structural, object, nil, maxCost)
	if errs = append(errs, broken...); budget < 0 || len(errs) > maxErrors {
		return append(errs[:min(len(errs), maxErrors)], incomplete(path))
	}

	return errs
}

// incomplete is an error of the whole spec, so any change is a new value (package ratchet).
func incomplete(path *field.Path) *field.Error {
	return field.Invalid(path, field.OmitValueType{}, "may have more errors; correct these first")
}

// tooMany returns an error if a list or the spec has too many values, or nil.
func tooMany(spec map[string]any, schema *structuralschema.Structural, path *field.Path) *field.Error {
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
// adds the number of visited values to values. Unknown fields have no schema.
func longList(value any, schema *structuralschema.Structural, path *field.Path, values *int) *field.Error {
	if *values++; *values > maxValues {
		return nil
	}

	schema = cmp.Or(schema, &structuralschema.Structural{})

	switch value := value.(type) {
	case map[string]any:
		for name, inner := range value {
			var below *structuralschema.Structural
			if property, isKnown := schema.Properties[name]; isKnown {
				below = &property
			} else if schema.AdditionalProperties != nil {
				below = schema.AdditionalProperties.Structural
			}
			if err := longList(inner, below, path.Child(name), values); err != nil {
				return err
			}
		}
	case []any:
		limits := schema.ValueValidation
		if limits != nil && limits.MaxItems != nil && int64(len(value)) > *limits.MaxItems {
			return field.TooMany(path, len(value), int(*limits.MaxItems))
		}
		for i, inner := range value {
			if err := longList(inner, schema.Items, path.Index(i), values); err != nil {
				return err
			}
		}
	}

	return nil
}
