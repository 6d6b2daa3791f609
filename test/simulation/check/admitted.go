package check

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/example/nginx-operator/api/v1alpha2"
)

// admitted requires that the NetworkPolicy has the number of each port of the running Pods, also
// while Pods with different numbers run.
func admitted(s *State, instance *v1alpha2.NginxOperator) string {
	at := slices.IndexFunc(s.Children, func(child *unstructured.Unstructured) bool {
		return child.GetKind() == "NetworkPolicy" && child.GetName() == instance.Name
	})
	if at < 0 || s.Refuses || instance.Spec.Paused {
		return ""
	}
	policy := &networkingv1.NetworkPolicy{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(s.Children[at].Object, policy); err != nil {
		panic(err)
	}
	open := map[int32]bool{}
	for _, rule := range policy.Spec.Ingress {
		for _, port := range rule.Ports {
			open[port.Port.IntVal] = true
		}
	}
	for _, pod := range s.Pods {
		if pod.Labels["app.kubernetes.io/instance"] != instance.Name || pod.Status.Phase != corev1.PodRunning {
			continue
		}
		for _, container := range pod.Spec.Containers {
			for _, port := range container.Ports {
				if !open[port.ContainerPort] {
					return fmt.Sprintf("Pod %s listens on %d, and the NetworkPolicy does not open it", pod.Name, port.ContainerPort)
				}
			}
		}
	}
	return ""
}
