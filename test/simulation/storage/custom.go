package storage

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"

	"github.com/example/nginx-operator/config/crd"
)

// custom is the compiled schema of the NginxOperator.
type custom struct {
	structural *structuralschema.Structural
	validator  validation.SchemaValidator
	rules      *cel.Validator
}

// schemaOf compiles the schema of the NginxOperator at the storage version.
var schemaOf = sync.OnceValues(func() (*custom, error) {
	definition := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.Unmarshal(crd.NginxOperators, definition); err != nil {
		return nil, fmt.Errorf("failed to read the CRD: %w", err)
	}
	for _, version := range definition.Spec.Versions {
		if version.Name != NginxOperators.Version {
			continue
		}
		schema := &apiextensions.JSONSchemaProps{}
		err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(version.Schema.OpenAPIV3Schema, schema, nil)
		if err != nil {
			return nil, fmt.Errorf("failed to convert the schema: %w", err)
		}
		structural, err := structuralschema.NewStructural(schema)
		if err != nil {
			return nil, fmt.Errorf("failed to read the schema: %w", err)
		}
		validator, _, err := validation.NewSchemaValidator(schema)
		if err != nil {
			return nil, fmt.Errorf("failed to compile the schema: %w", err)
		}
		return &custom{structural, validator, cel.NewValidator(structural, true, celconfig.PerCallLimit)}, nil
	}
	return nil, fmt.Errorf("the CRD has no version %s", NginxOperators.Version)
})

// completeCustom prunes unknown fields of an NginxOperator, adds defaults, and validates it,
// including the CEL rules.
func completeCustom(key Key, before, object map[string]any) error {
	schema, err := schemaOf()
	if err != nil {
		panic(err) // the CRD is part of the program
	}
	pruning.Prune(object, schema.structural, true)
	defaulting.Default(object, schema.structural)
	errs := validation.ValidateCustomResource(nil, object, schema.validator)
	if len(errs) == 0 {
		var old any
		if before != nil {
			old = before
		}
		errs, _ = schema.rules.Validate(context.Background(), nil, schema.structural, object, old, celconfig.RuntimeCELCostBudget)
	}
	if len(errs) > 0 {
		return invalid(key, errs...)
	}
	return nil
}
