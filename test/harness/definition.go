package harness

import apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

// SetStorageVersion makes a definition store one of its versions, and no other.
func SetStorageVersion(definition *apiextensionsv1.CustomResourceDefinition, version string) {
	for i := range definition.Spec.Versions {
		definition.Spec.Versions[i].Storage = definition.Spec.Versions[i].Name == version
	}
}
