// Package refusal reads the tables of manifests that the examples refuse (examples/*/testdata/refused) and asks a
// CustomResourceDefinition, without an API server, what the API server would say of a manifest: its schema and the rules in
// it. What is refused later, for an unknown field or by a webhook, it does not know.
package refusal

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	definitionvalidation "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"
)

const (
	// perCall and perObject are what the API server lets the rules of a schema cost when it validates an object.
	perCall   = 1_000_000
	perObject = 10_000_000
)

// Manifest is one entry of a table.
type Manifest struct {
	// Name is that of the file, without its extension.
	Name string
	// Want is the message that has to be part of the refusal: the file's first line, a comment.
	Want string
	// Object is the manifest itself.
	Object *unstructured.Unstructured
}

// Read returns the table that the YAML files of a folder make. A folder without files, and a file without the comment, are
// errors: a table that tests nothing would pass.
func Read(dir string) ([]Manifest, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		return nil, fmt.Errorf("failed to look for manifests: %w", err)
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("failed to find manifests in %s", dir)
	}
	var out []Manifest
	for _, path := range paths {
		raw, err := os.ReadFile(filepath.Clean(path))
		if err != nil {
			return nil, fmt.Errorf("failed to read a manifest: %w", err)
		}
		first, _, _ := bytes.Cut(raw, []byte("\n"))
		want, found := strings.CutPrefix(string(first), "# ")
		if !found {
			return nil, fmt.Errorf("failed to read %s: its first line has to be a comment with the message", path)
		}
		one := Manifest{Name: strings.TrimSuffix(filepath.Base(path), ".yaml"), Want: want, Object: &unstructured.Unstructured{}}
		if err := decode(raw, one.Object); err != nil {
			return nil, fmt.Errorf("failed to read %s: %w", path, err)
		}
		out = append(out, one)
	}
	return out, nil
}

// decode reads one YAML document as the API server does: a whole number is an integer.
func decode(raw []byte, object *unstructured.Unstructured) error {
	encoded, err := yaml.YAMLToJSON(raw)
	if err != nil {
		return err
	}
	return json.Unmarshal(encoded, &object.Object)
}

// Definition validates the objects of one version of a CustomResourceDefinition.
type Definition struct {
	schema validation.SchemaValidator
	rules  *cel.Validator
}

// Load reads a definition from a file and validates it as the API server does, which includes what its rules may cost. It
// takes the version that is stored.
func Load(path string) (*Definition, error) {
	raw, err := os.ReadFile(filepath.Clean(path))
	if err != nil {
		return nil, fmt.Errorf("failed to read a definition: %w", err)
	}
	external, definition := &apiextensionsv1.CustomResourceDefinition{}, &apiextensions.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(raw, external); err != nil {
		return nil, fmt.Errorf("failed to decode %s: %w", path, err)
	}
	apiextensionsv1.SetDefaults_CustomResourceDefinition(external)
	apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&external.Spec)
	if err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(external, definition, nil); err != nil {
		return nil, fmt.Errorf("failed to convert %s: %w", path, err)
	}
	for _, version := range definition.Spec.Versions {
		if version.Storage {
			definition.Status.StoredVersions = []string{version.Name}
		}
	}
	if err := definitionvalidation.ValidateCustomResourceDefinition(context.Background(), definition).ToAggregate(); err != nil {
		return nil, fmt.Errorf("failed to validate %s: %w", path, err)
	}
	declared, err := apiextensions.GetSchemaForVersion(definition, definition.Status.StoredVersions[0])
	if err != nil {
		return nil, fmt.Errorf("failed to find the schema of %s: %w", path, err)
	}
	structural, err := schema.NewStructural(declared.OpenAPIV3Schema)
	if err != nil {
		return nil, fmt.Errorf("failed to read the schema of %s: %w", path, err)
	}
	validator, _, err := validation.NewSchemaValidator(declared.OpenAPIV3Schema)
	if err != nil {
		return nil, fmt.Errorf("failed to use the schema of %s: %w", path, err)
	}
	return &Definition{schema: validator, rules: cel.NewValidator(structural, true, perCall)}, nil
}

// Create returns what is wrong with an object that is created, nil where nothing is.
func (d *Definition) Create(object *unstructured.Unstructured) error { return d.validate(object, nil) }

// Update returns what is wrong with an object that takes the place of another one, nil where nothing is.
func (d *Definition) Update(object, old *unstructured.Unstructured) error {
	return d.validate(object, old.Object)
}

// validate does as the API server does: where a value has another type than the schema says, no rule is evaluated.
func (d *Definition) validate(object *unstructured.Unstructured, old map[string]any) error {
	errs := validation.ValidateCustomResource(nil, object.Object, d.schema)
	if !hasBlocking(errs) {
		var before any
		if old != nil {
			before = old
		}
		found, _ := d.rules.Validate(context.Background(), nil, nil, object.Object, before, perObject)
		errs = append(errs, found...)
	}
	return errs.ToAggregate()
}

// hasBlocking tells whether errors keep the API server from evaluating rules.
func hasBlocking(errs field.ErrorList) bool {
	for _, err := range errs {
		switch err.Type {
		case field.ErrorTypeNotSupported, field.ErrorTypeRequired, field.ErrorTypeTooLong, field.ErrorTypeTooMany, field.ErrorTypeTypeInvalid:
			return true
		}
	}
	return false
}
