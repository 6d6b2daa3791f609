package objectcache

import (
	"reflect"
	"strings"
	"unique"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/codec"
	"github.com/example/nginx-operator/internal/wellknown"
	"github.com/example/nginx-operator/pkg/apply"
)

// slim is the transform of the cache. It removes the fields that no reader uses. Any client can
// create objects with our labels, so the cost for each kind is at most proportional to the size of
// the object, the result is bounded, and no content is interpreted. It does not change tombstones.
func slim(in any) (any, error) {
	switch object := in.(type) {
	case *v1alpha2.NginxOperator:
		slimNginxOperator(object)
	case *apiextensionsv1.CustomResourceDefinition:
		// Readers only watch for changes, and read the CRD from the API server.
		*object = apiextensionsv1.CustomResourceDefinition{TypeMeta: object.TypeMeta, ObjectMeta: object.ObjectMeta}
		object.ManagedFields, object.Annotations = nil, nil
	case *appsv1.ControllerRevision:
		slimChild(object)
		object.Data = runtime.RawExtension{}
	case *appsv1.Deployment:
		slimDeployment(object)
	case *appsv1.ReplicaSet:
		slimReplicaSet(object)
	case *corev1.Pod:
		slimPod(object)
	case *corev1.Service:
		slimService(object)
	case *discoveryv1.EndpointSlice:
		slimEndpointSlice(object)
	case *gatewayv1.HTTPRoute:
		slimHTTPRoute(object)
	case *networkingv1.Ingress:
		slimIngress(object)
	case client.Object:
		slimChild(object) // and no other field
		identity := *metaOf(object)
		reflect.ValueOf(object).Elem().SetZero()
		*metaOf(object) = identity
	}
	return in, nil
}

const (
	// maxText is the maximum length of a container message that a kubelet writes, in bytes.
	maxText = 4096
	// maxConditions and maxContainers exceed the numbers in the operator's own Pods.
	maxConditions = 16
	maxContainers = 32
	// maxName and maxUID bound the fields of an owner reference.
	maxName = 253
	maxUID  = 64
	// maxNumberText is enough for two numbers with their names, or a hash.
	maxNumberText = 64
)

// numbers are the annotations that the operator reads.
var numbers = []string{
	wellknown.AnnotationReplicas, wellknown.AnnotationContent, wellknown.AnnotationRevision, wellknown.AnnotationChange,
}

// selectors are the labels that select the Pods of an instance and of a revision.
var selectors = []string{
	wellknown.LabelName, wellknown.LabelInstance, wellknown.LabelManagedBy, appsv1.DefaultDeploymentUniqueLabelKey,
}

// pick returns the entries with these keys whose values are within the limit, or nil.
func pick(from map[string]string, limit int, keys ...string) map[string]string {
	var picked map[string]string
	for _, key := range keys {
		value, exists := from[key]
		if !exists || len(value) > limit {
			continue
		}
		if picked == nil {
			picked = map[string]string{}
		}

		picked[key] = value
	}

	return picked
}

// slimChild reduces the metadata of a child to its identity and a fingerprint of the whole child. A
// reconcile detects a changed child by the fingerprint, so call slimChild before removing other
// fields. An object that no NginxOperator controls is not a child and gets no fingerprint.
func slimChild(child client.Object) {
	meta := metaOf(child)
	identity := identityOf(meta)
	if isOurs(identity.OwnerReferences) {
		apply.Stamp(child)
		identity.SetSelfLink(child.GetSelfLink())
	}

	*meta = identity
}

func identityOf(meta *metav1.ObjectMeta) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: meta.Namespace, Name: meta.Name, UID: meta.UID, OwnerReferences: controllerOf(meta),
		ResourceVersion: meta.ResourceVersion, Generation: meta.Generation,
		CreationTimestamp: meta.CreationTimestamp, DeletionTimestamp: meta.DeletionTimestamp,
	}
}

// controllerOf returns the controller, unless a field is longer than any valid one.
func controllerOf(meta *metav1.ObjectMeta) []metav1.OwnerReference {
	owner := metav1.GetControllerOfNoCopy(meta)
	if owner == nil || max(len(owner.APIVersion), len(owner.Kind), len(owner.Name)) > maxName || len(owner.UID) > maxUID {
		return nil
	}
	return []metav1.OwnerReference{{
		// All children share two texts.
		APIVersion: unique.Make(owner.APIVersion).Value(), Kind: unique.Make(owner.Kind).Value(),
		Name: owner.Name, UID: owner.UID, Controller: isController,
	}}
}

// isController is one value for all children, because the cache retains it.
var isController = ptr.To(true)

func isOurs(owners []metav1.OwnerReference) bool {
	if len(owners) == 0 {
		return false
	}
	version, err := schema.ParseGroupVersion(owners[0].APIVersion)
	return err == nil && version.Group == v1alpha2.GroupVersion.Group && owners[0].Kind == "NginxOperator"
}

// cut truncates strings, and releases the memory of the rest.
func cut(limit int, texts ...*string) {
	for _, text := range texts {
		if len(*text) > limit {
			*text = strings.Clone(strings.ToValidUTF8((*text)[:limit], ""))
		}
	}
}

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
