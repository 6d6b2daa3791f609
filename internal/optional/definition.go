package optional

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// problemOf returns the reason why a CustomResourceDefinition serves no objects at a version, or ""
// if it does. The CustomResourceDefinition is nil if it does not exist.
func problemOf(crd *apiextensionsv1.CustomResourceDefinition, name, version string) string {
	serves := func(one apiextensionsv1.CustomResourceDefinitionVersion) bool {
		return one.Name == version && one.Served
	}
	switch {
	case crd == nil, !crd.DeletionTimestamp.IsZero(), !apihelpers.IsCRDConditionTrue(crd, apiextensionsv1.Established):
		// A single message covers all three cases, because an installation and a deletion pass
		// through each of them, and every message changes the status of every user.
		return fmt.Sprintf("CustomResourceDefinition %q does not exist, is not established or is being deleted", name)
	case !slices.ContainsFunc(crd.Spec.Versions, serves):
		return fmt.Sprintf("CustomResourceDefinition %q does not serve version %s", name, version)
	}
	return ""
}

// stripCRD drops all fields of a CustomResourceDefinition that problemOf does not use. With its
// schemas, it is as large as hundreds of objects.
func stripCRD(in any) (any, error) {
	crd, ok := in.(*apiextensionsv1.CustomResourceDefinition)
	if !ok {
		return in, nil
	}
	kept := apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{
		Name: crd.Name, UID: crd.UID, ResourceVersion: crd.ResourceVersion, DeletionTimestamp: crd.DeletionTimestamp,
	}}
	for _, version := range crd.Spec.Versions {
		kept.Spec.Versions = append(kept.Spec.Versions,
			apiextensionsv1.CustomResourceDefinitionVersion{Name: version.Name, Served: version.Served})
	}
	if established := apihelpers.FindCRDCondition(crd, apiextensionsv1.Established); established != nil {
		kept.Status.Conditions = []apiextensionsv1.CustomResourceDefinitionCondition{{Type: established.Type, Status: established.Status}}
	}
	*crd = kept
	return crd, nil
}

// logWatchError logs an error of a list or watch. For a moment after the creation and the deletion
// of a CustomResourceDefinition, the API server does not know the kind, which is not an error.
func logWatchError(ctx context.Context, reflector *toolscache.Reflector, err error) {
	if apierrors.IsNotFound(err) {
		log.FromContext(ctx).V(1).Info("The API server does not serve the kind", "error", err.Error())
		return
	}
	toolscache.DefaultWatchErrorHandler(ctx, reflector, err)
}
