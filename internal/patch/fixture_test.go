package patch

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/assets"
	"github.com/example/nginx-operator/internal/wellknown"
)

var at = field.NewPath("spec", "patches")

// children returns the rendered children of an object that uses most of the fields that patches
// affect.
func children() []client.Object {
	meta := metav1.ObjectMeta{Namespace: "shop", Name: "web", Labels: wellknown.ChildLabels("web", "nginx:1.28.0")}
	selector := wellknown.Selector("web")
	deployment, budget, policy := assets.Deployment(), assets.PodDisruptionBudget(), assets.NetworkPolicy()
	deployment.ObjectMeta, budget.ObjectMeta, policy.ObjectMeta = meta, *meta.DeepCopy(), *meta.DeepCopy()
	deployment.Annotations = map[string]string{wellknown.AnnotationReplicas: "1"}
	deployment.Spec.Replicas, deployment.Spec.ProgressDeadlineSeconds = ptr.To[int32](1), ptr.To[int32](120)
	deployment.Spec.Selector = &metav1.LabelSelector{MatchLabels: selector}
	pod := &deployment.Spec.Template
	pod.Labels = wellknown.PodLabels("web")
	pod.Annotations = map[string]string{"example.com/team": "shop"}
	pod.Spec.TerminationGracePeriodSeconds = ptr.To[int64](30)
	pod.Spec.SecurityContext.Sysctls = []corev1.Sysctl{{Name: "net.ipv4.ip_unprivileged_port_start", Value: "0"}}
	pod.Spec.Volumes[0].ConfigMap.Name = "web-0123"
	nginx := &pod.Spec.Containers[0]
	nginx.Image = "nginx:1.28.0"
	nginx.Ports = []corev1.ContainerPort{
		{Name: "http", ContainerPort: 80, Protocol: corev1.ProtocolTCP}, {Name: "health", ContainerPort: 18080, Protocol: corev1.ProtocolTCP},
	}
	nginx.Resources.Requests = corev1.ResourceList{"cpu": quantity("10m"), "memory": quantity("32Mi")}
	nginx.Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: 5}}}
	budget.Spec.Selector = &metav1.LabelSelector{MatchLabels: selector}
	policy.Spec.PodSelector = metav1.LabelSelector{MatchLabels: selector}
	return []client.Object{
		&corev1.Service{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Service"}, ObjectMeta: *meta.DeepCopy(),
			Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeClusterIP, Selector: selector, Ports: []corev1.ServicePort{
				{Name: "http", Port: 80, TargetPort: intstr.FromString("http"), Protocol: corev1.ProtocolTCP, AppProtocol: ptr.To("http")},
			}},
		},
		policy, deployment, budget,
	}
}

func patches(kind string, texts ...string) []v1alpha2.Patch {
	var out []v1alpha2.Patch
	for _, text := range texts {
		out = append(out, v1alpha2.Patch{Target: v1alpha2.PatchTarget{Kind: kind}, Patch: text})
	}
	return out
}
