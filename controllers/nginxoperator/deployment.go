package nginxoperator

import (
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/assets"
	"github.com/example/nginx-operator/internal/defaults"
	"github.com/example/nginx-operator/internal/operatormanager"
	"github.com/example/nginx-operator/internal/wellknown"
)

func desiredDeployment(object *v1alpha2.NginxOperator, in inputs) *appsv1.Deployment {
	deployment := assets.Deployment()
	deployment.ObjectMeta = childMeta(object, in)
	deployment.Annotations = map[string]string{
		wellknown.AnnotationReplicas: strconv.FormatInt(int64(defaults.Replicas(&object.Spec)), 10),
	}
	deployment.Spec.Replicas = ptr.To(deploymentReplicas(object, in.deployment))
	if in.deployment != nil {
		deployment.ResourceVersion = in.deployment.ResourceVersion
	}
	deployment.Spec.Selector = &metav1.LabelSelector{MatchLabels: wellknown.Selector(object.Name)}
	rollout := defaults.RolloutOf(&object.Spec)
	deployment.Spec.Strategy.RollingUpdate = &appsv1.RollingUpdateDeployment{
		MaxSurge: &rollout.MaxSurge, MaxUnavailable: &rollout.MaxUnavailable,
	}
	deployment.Spec.ProgressDeadlineSeconds = &rollout.ProgressDeadlineSeconds
	setPodTemplate(&deployment.Spec.Template, object, in)
	return deployment
}

// deploymentReplicas returns the replicas of the object, except where somebody set others through the scale
// subresource of the Deployment (a HorizontalPodAutoscaler does) since the object last changed its own: then those.
func deploymentReplicas(object *v1alpha2.NginxOperator, live *appsv1.Deployment) int32 {
	declared := defaults.Replicas(&object.Spec)
	if live == nil || live.Spec.Replicas == nil || !scaledByOthers(live) ||
		live.Annotations[wellknown.AnnotationReplicas] != strconv.FormatInt(int64(declared), 10) {
		return declared
	}
	return *live.Spec.Replicas
}

// scaledByOthers reports whether spec.replicas was last set through the scale subresource, which the operator never uses.
func scaledByOthers(deployment *appsv1.Deployment) bool {
	return slices.ContainsFunc(deployment.ManagedFields, operatormanager.SetsReplicasByScale)
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
