package objectcache

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/codec"
	"github.com/example/nginx-operator/internal/wellknown"
)

// slimNginxOperator keeps the fields that a reconcile reads: the spec, the status, the identity of
// the object, whether it was readable as a whole, and whether it is a canary. A single annotation,
// for example the one that kubectl apply sets, can be as large as all of these fields.
func slimNginxOperator(object *v1alpha2.NginxOperator) {
	why, isUnreadable := codec.Unreadable(object)
	_, hasUnreadable := object.Annotations[wellknown.AnnotationV1alpha2Unreadable]
	isCanary := wellknown.IsCanary(object.Labels)
	object.ManagedFields, object.Annotations, object.Labels, object.OwnerReferences, object.Finalizers = nil, nil, nil, nil, nil
	if isUnreadable {
		codec.MarkUnreadable(object, why)
	}
	if hasUnreadable {
		metav1.SetMetaDataAnnotation(&object.ObjectMeta, wellknown.AnnotationV1alpha2Unreadable, "")
	}
	if isCanary {
		object.Labels = map[string]string{wellknown.LabelCanary: "true"}
	}
}

// slimCRD keeps the name. Readers only watch for changes, and read the CRD from the API server.
func slimCRD(crd *apiextensionsv1.CustomResourceDefinition) {
	crd.ManagedFields, crd.Annotations = nil, nil
	crd.Spec, crd.Status = apiextensionsv1.CustomResourceDefinitionSpec{}, apiextensionsv1.CustomResourceDefinitionStatus{}
}
