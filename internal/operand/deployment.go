package operand

import (
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/assets"
	"github.com/example/nginx-operator/internal/wellknown"
)

// DesiredDeployment returns the Deployment. It has the resource version of the live Deployment, so
// that a write fails if another client has scaled it since it was read.
func DesiredDeployment(object *v1alpha2.NginxOperator, in Inputs) *appsv1.Deployment {
	deployment := assets.Deployment()
	deployment.ObjectMeta = ObjectMeta(object, in)
	replicas := ReplicasOf(object, in.Deployment)
	if replicas.retained != "" {
		metav1.SetMetaDataAnnotation(&deployment.ObjectMeta, wellknown.AnnotationReplicas, replicas.retained)
	}
	if in.Suffix != "" {
		metav1.SetMetaDataAnnotation(&deployment.ObjectMeta, wellknown.AnnotationContent, strings.TrimPrefix(in.Suffix, "-"))
	}
	if in.Deployment != nil {
		deployment.ResourceVersion = in.Deployment.ResourceVersion
	}

	deployment.Spec.Replicas = &replicas.Number
	deployment.Spec.Selector = &metav1.LabelSelector{MatchLabels: wellknown.Selector(object.Name)}
	setRollout(deployment, object)
	deployment.Spec.MinReadySeconds = minReadySeconds(&object.Spec)
	setPodTemplate(&deployment.Spec.Template, object, in)
	return deployment
}

// SetCareful lets each running Pod of a Deployment stay until a new one is ready.
func SetCareful(deployment *appsv1.Deployment) {
	rolling := deployment.Spec.Strategy.RollingUpdate.DeepCopy()
	if rolling == nil {
		return
	}

	rolling.MaxUnavailable = ptr.To(intstr.FromInt32(0))
	if surge := ptr.Deref(rolling.MaxSurge, intstr.FromInt32(0)); surge == intstr.FromInt32(0) || surge == intstr.FromString("0%") {
		rolling.MaxSurge = ptr.To(intstr.FromInt32(1))
	}

	deployment.Spec.Strategy.RollingUpdate = rolling
}

// maxSpec is the limit in bytes for the part of a spec in an annotation of the Deployment, which
// counts twice in the limit of 256 KiB for all annotations.
const maxSpec = 16 << 10

// Mark writes the ID of the Pods to a declared Deployment, and the part of the spec that reaches
// them if it is small enough. The Deployment controller copies both to the ReplicaSet.
func Mark(deployment *appsv1.Deployment, id, spec string, live *appsv1.Deployment) {
	metav1.SetMetaDataAnnotation(&deployment.ObjectMeta, wellknown.AnnotationChange, id)
	if len(spec) <= maxSpec {
		metav1.SetMetaDataAnnotation(&deployment.ObjectMeta, wellknown.AnnotationSpec, spec)
	}
	if live != nil && live.Labels[wellknown.LabelRecord] != "" {
		metav1.SetMetaDataLabel(&deployment.ObjectMeta, wellknown.LabelRecord, "") // a downgrade must not follow it
	}
}

// MarkAgain writes the ID of its Pods to a Deployment that an older release may have declared.
func MarkAgain(deployment *appsv1.Deployment, id string) {
	if deployment.Annotations[wellknown.AnnotationChange] != "" {
		return
	}

	delete(deployment.Annotations, wellknown.AnnotationFirstDeclaration)
	metav1.SetMetaDataAnnotation(&deployment.ObjectMeta, wellknown.AnnotationChange, id)
	metav1.SetMetaDataLabel(&deployment.ObjectMeta, wellknown.LabelRecord, "")
}

// MarkAsBefore retains the names of a release before 0.8.0, because an upgrade changes no child.
func MarkAsBefore(deployment, live *appsv1.Deployment) {
	deployment.Labels[wellknown.LabelRecord] = live.Labels[wellknown.LabelRecord]
	if first, _, _ := strings.Cut(live.Annotations[wellknown.AnnotationFirstDeclaration], " "); first != "" {
		metav1.SetMetaDataAnnotation(&deployment.ObjectMeta, wellknown.AnnotationFirstDeclaration, first)
	}
}

// IsMarkedAsBefore reports whether a Deployment has the form of a release before 0.8.0.
func IsMarkedAsBefore(live *appsv1.Deployment) bool {
	return live != nil && live.Annotations[wellknown.AnnotationChange] == "" && live.Labels[wellknown.LabelRecord] != ""
}
