package storagemigration

import (
	"fmt"
	"os"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

const manifestKind = "StorageVersionMigration"

// kubeMigratorGroup is of kube-storage-version-migrator, whose spec.resource also has the version.
const kubeMigratorGroup = "migration.k8s.io"

// apis are the APIs of StorageVersionMigrations by preference: of Kubernetes 1.37, of Kubernetes
// 1.35 and 1.36, and of kube-storage-version-migrator.
var apis = []schema.GroupVersionKind{
	{Group: "storagemigration.k8s.io", Version: "v1", Kind: manifestKind},
	{Group: "storagemigration.k8s.io", Version: "v1beta1", Kind: manifestKind},
	{Group: kubeMigratorGroup, Version: "v1alpha1", Kind: manifestKind},
}

// Load reads the StorageVersionMigration of a CRD, which has its name, from a file. Errors name the
// file and, for a wrong value, the field.
func Load(file, crd string) (*unstructured.Unstructured, error) {
	raw, err := os.ReadFile(file) // #nosec G304 -- a flag of the operator names it
	if err != nil {
		return nil, fmt.Errorf("failed to read the storage migration: %w", err)
	}

	object := &unstructured.Unstructured{}
	if err := yaml.UnmarshalStrict(raw, &object.Object); err != nil {
		return nil, fmt.Errorf("failed to read the storage migration in %s: %w", file, err)
	}

	resource, _, _ := unstructured.NestedStringMap(object.Object, "spec", "resource")
	for _, want := range []struct{ field, is, want string }{
		{"kind", object.GetKind(), manifestKind},
		{"metadata.name", object.GetName(), crd},
		{"spec.resource", resource["resource"] + "." + resource["group"], crd},
	} {
		if want.is != want.want {
			return nil, fmt.Errorf("the storage migration in %s has %s %q, it must be %q", file, want.field, want.is, want.want)
		}
	}

	return object, nil
}

// forCRD returns the manifest as an object of an API, owned by a CRD, for its current generation.
func forCRD(
	manifest *unstructured.Unstructured, api schema.GroupVersionKind, crd *apiextensionsv1.CustomResourceDefinition,
) (*unstructured.Unstructured, error) {
	object := manifest.DeepCopy()
	object.SetGroupVersionKind(api)
	object.SetAnnotations(map[string]string{generationAnnotation: generationOf(crd)})
	object.SetOwnerReferences([]metav1.OwnerReference{{
		APIVersion: apiextensionsv1.SchemeGroupVersion.String(), Kind: "CustomResourceDefinition", Name: crd.Name, UID: crd.UID,
	}})

	if api.Group != kubeMigratorGroup {
		return object, nil
	}
	return object, unstructured.SetNestedField(object.Object, storedVersion(crd), "spec", "resource", "version")
}
