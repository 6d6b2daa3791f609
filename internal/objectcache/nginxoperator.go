package objectcache

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/wellknown"
)

// slimNginxOperator keeps the fields that a reconcile reads: the spec, the status, the identity of
// the object, whether it was readable as a whole, and whether it is a canary. A single annotation,
// for example the one that kubectl apply sets, can be as large as all of these fields.
func slimNginxOperator(in any) (any, error) {
	object, ok := in.(*v1alpha2.NginxOperator)
	if !ok {
		return in, nil
	}
	_, isUnreadable := object.Annotations[wellknown.AnnotationV1alpha2Unreadable]
	isCanary := wellknown.IsCanary(object.Labels)
	object.ManagedFields, object.Annotations, object.Labels, object.OwnerReferences, object.Finalizers = nil, nil, nil, nil, nil
	if isUnreadable {
		object.Annotations = map[string]string{wellknown.AnnotationV1alpha2Unreadable: ""}
	}
	if isCanary {
		object.Labels = map[string]string{wellknown.LabelCanary: "true"}
	}
	return in, nil
}

// slimCRD keeps the name. Readers only watch for changes, and read the CRD from the API server.
func slimCRD(in any) (any, error) {
	if crd, ok := in.(*apiextensionsv1.CustomResourceDefinition); ok {
		crd.ManagedFields, crd.Annotations = nil, nil
		crd.Spec, crd.Status = apiextensionsv1.CustomResourceDefinitionSpec{}, apiextensionsv1.CustomResourceDefinitionStatus{}
	}
	return in, nil
}
