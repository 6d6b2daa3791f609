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

// problemOf says why a CustomResourceDefinition serves no objects at a version, "" where it does. It is nil where it does not exist.
func problemOf(crd *apiextensionsv1.CustomResourceDefinition, name, version string) string {
	serves := func(one apiextensionsv1.CustomResourceDefinitionVersion) bool {
		return one.Name == version && one.Served
	}
	switch {
	case crd == nil, !crd.DeletionTimestamp.IsZero(), !apihelpers.IsCRDConditionTrue(crd, apiextensionsv1.Established):
		// In one sentence: on its way in and out it is each of them for a moment, and every sentence is a status of every user.
		return fmt.Sprintf("CustomResourceDefinition %q does not exist, is not established or is being deleted", name)
	case !slices.ContainsFunc(crd.Spec.Versions, serves):
		return fmt.Sprintf("CustomResourceDefinition %q does not serve version %s", name, version)
	}
	return ""
}

// slim keeps of a CustomResourceDefinition what problemOf looks at. With its schemas it is as large as hundreds of objects.
func slim(in any) (any, error) {
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

// quietly tells of an error of a list or watch. That the API server does not know the kind it says for a moment before it serves a
// new CustomResourceDefinition, and after one is gone.
func quietly(ctx context.Context, reflector *toolscache.Reflector, err error) {
	if apierrors.IsNotFound(err) {
		log.FromContext(ctx).V(1).Info("The API server does not serve the kind", "error", err.Error())
		return
	}
	toolscache.DefaultWatchErrorHandler(ctx, reflector, err)
}
