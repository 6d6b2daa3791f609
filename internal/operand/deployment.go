package operand

import (
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/assets"
	"github.com/example/nginx-operator/internal/defaults"
	"github.com/example/nginx-operator/internal/wellknown"
)

// DesiredDeployment returns the Deployment. It has the resource version of the live Deployment, so
// that a write fails if another client has scaled it since it was read.
func DesiredDeployment(object *v1alpha2.NginxOperator, in Inputs) *appsv1.Deployment {
	deployment := assets.Deployment()
	deployment.ObjectMeta = ObjectMeta(object, in)
	replicas := ReplicasOf(object, in.Deployment)
	deployment.Annotations = deploymentAnnotations(replicas, in)
	if in.Record != "" {
		deployment.Labels[wellknown.LabelRecord] = in.Record
	}
	deployment.Spec.Replicas = &replicas.Number
	if in.Deployment != nil {
		deployment.ResourceVersion = in.Deployment.ResourceVersion
	}
	deployment.Spec.Selector = &metav1.LabelSelector{MatchLabels: wellknown.Selector(object.Name)}
	rollout := defaults.RolloutOf(&object.Spec)
	if in.Attempt {
		rollout = careful(rollout)
	}
	deployment.Spec.Strategy.RollingUpdate = &appsv1.RollingUpdateDeployment{
		MaxSurge: &rollout.MaxSurge, MaxUnavailable: &rollout.MaxUnavailable,
	}
	deployment.Spec.MinReadySeconds = minReadySeconds(&object.Spec)
	deployment.Spec.ProgressDeadlineSeconds = &rollout.ProgressDeadlineSeconds
	setPodTemplate(&deployment.Spec.Template, object, in)
	return deployment
}

// careful returns a rollout in which every running Pod stays until a new one is ready.
func careful(rollout defaults.Rollout) defaults.Rollout {
	rollout.MaxUnavailable = intstr.FromInt32(0)
	if surge := rollout.MaxSurge; surge == intstr.FromInt32(0) || surge == intstr.FromString("0%") {
		rollout.MaxSurge = intstr.FromInt32(1)
	}
	return rollout
}

// deploymentAnnotations returns the operator's annotations of a Deployment, or nil if it needs
// none.
func deploymentAnnotations(replicas Replicas, in Inputs) map[string]string {
	out := map[string]string{}
	if replicas.retained != "" {
		out[wellknown.AnnotationReplicas] = replicas.retained
	}
	if in.Suffix != "" {
		out[wellknown.AnnotationContent] = strings.TrimPrefix(in.Suffix, "-")
	}
	if in.Carried != "" {
		out[wellknown.AnnotationFirstDeclaration] = in.Carried
	}
	if len(out) == 0 {
		return nil
	}
	return out
}
