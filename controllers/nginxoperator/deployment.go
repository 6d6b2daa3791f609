package nginxoperator

import (
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/api/v1alpha1"
	"github.com/example/nginx-operator/assets"
	"github.com/example/nginx-operator/internal/metadata"
)

// firstUnprivilegedPort is the first port that a process without privileges may listen on without a sysctl.
const firstUnprivilegedPort = 1024

func desiredDeployment(object *v1alpha1.NginxOperator, in inputs, configMapName string) *appsv1.Deployment {
	deployment := assets.Deployment()
	deployment.ObjectMeta = childMeta(object, in)
	deployment.Annotations = map[string]string{
		metadata.AnnotationReplicas: strconv.FormatInt(int64(replicas(object)), 10),
	}
	deployment.Spec.Replicas = ptr.To(deploymentReplicas(object, in.deployment))
	if in.deployment != nil {
		deployment.ResourceVersion = in.deployment.ResourceVersion
	}
	deployment.Spec.Selector = &metav1.LabelSelector{MatchLabels: metadata.Selector(object.Name)}

	template := &deployment.Spec.Template
	template.Labels = metadata.PodLabels(object.Name)
	if object.Spec.ForceRedeploy != "" {
		template.Annotations = map[string]string{metadata.AnnotationForceRedeploy: object.Spec.ForceRedeploy}
	}
	if port(object) < firstUnprivilegedPort {
		template.Spec.SecurityContext.Sysctls = []corev1.Sysctl{{Name: "net.ipv4.ip_unprivileged_port_start", Value: "0"}}
	}
	template.Spec.Volumes[0].ConfigMap.Name = configMapName

	nginx := &template.Spec.Containers[0]
	nginx.Image = in.image
	nginx.Ports = []corev1.ContainerPort{
		{Name: portHTTP, ContainerPort: port(object), Protocol: corev1.ProtocolTCP},
		{Name: portHealth, ContainerPort: healthPort(object), Protocol: corev1.ProtocolTCP},
	}
	return deployment
}

// deploymentReplicas returns the replicas of the object, except where somebody set others through the scale
// subresource of the Deployment (a HorizontalPodAutoscaler does) since the object last changed its own: then those.
func deploymentReplicas(object *v1alpha1.NginxOperator, live *appsv1.Deployment) int32 {
	declared := replicas(object)
	if live == nil || live.Spec.Replicas == nil || !scaledByOthers(live) ||
		live.Annotations[metadata.AnnotationReplicas] != strconv.FormatInt(int64(declared), 10) {
		return declared
	}
	return *live.Spec.Replicas
}

// scaledByOthers tells whether spec.replicas was last set through the scale subresource, which the operator never uses.
func scaledByOthers(deployment *appsv1.Deployment) bool {
	return slices.ContainsFunc(deployment.ManagedFields, func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Subresource == "scale" && entry.FieldsV1 != nil &&
			strings.Contains(entry.FieldsV1.GetRawString(), `"f:replicas"`)
	})
}
