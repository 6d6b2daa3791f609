// Package schematest visits the schemas of a CustomResourceDefinition.
package schematest

import apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

// Each calls do for a schema and for all schemas in it, with the path of each. path is the path of
// the schema itself.
func Each(schema *apiextensionsv1.JSONSchemaProps, path string, do func(path string, schema *apiextensionsv1.JSONSchemaProps)) {
	do(path, schema)
	for name, property := range schema.Properties {
		Each(&property, path+"."+name, do)
	}
	if schema.Items != nil && schema.Items.Schema != nil {
		Each(schema.Items.Schema, path+"[]", do)
	}
	if schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil {
		Each(schema.AdditionalProperties.Schema, path+"[*]", do)
	}
}
