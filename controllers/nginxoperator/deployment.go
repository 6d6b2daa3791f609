package nginxoperator

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/assets"
	"github.com/example/nginx-operator/internal/defaults"
	"github.com/example/nginx-operator/internal/wellknown"
)

func desiredDeployment(object *v1alpha2.NginxOperator, in inputs) *appsv1.Deployment {
	deployment := assets.Deployment()
	deployment.ObjectMeta = childMeta(object, in)
	replicas := replicasOf(object, in.deployment)
	deployment.Annotations = map[string]string{wellknown.AnnotationReplicas: replicas.record()}
	deployment.Spec.Replicas = &replicas.number
	if in.deployment != nil {
		deployment.ResourceVersion = in.deployment.ResourceVersion
	}
	deployment.Spec.Selector = &metav1.LabelSelector{MatchLabels: wellknown.Selector(object.Name)}
	rollout := defaults.RolloutOf(&object.Spec)
	deployment.Spec.Strategy.RollingUpdate = &appsv1.RollingUpdateDeployment{
		MaxSurge: &rollout.MaxSurge, MaxUnavailable: &rollout.MaxUnavailable,
	}
	deployment.Spec.MinReadySeconds = minReadySeconds(&object.Spec)
	deployment.Spec.ProgressDeadlineSeconds = &rollout.ProgressDeadlineSeconds
	setPodTemplate(&deployment.Spec.Template, object, in)
	return deployment
}

// mountedConfigMaps returns the names of the ConfigMaps that Pods of a template mount.
func mountedConfigMaps(template *corev1.PodTemplateSpec) []string {
	var out []string
	for _, volume := range template.Spec.Volumes {
		if volume.ConfigMap != nil {
			out = append(out, volume.ConfigMap.Name)
		}
	}
	return out
}
