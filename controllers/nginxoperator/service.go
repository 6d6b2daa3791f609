package nginxoperator

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/assets"
	"github.com/example/nginx-operator/internal/metadata"
)

func desiredService(object *v1alpha2.NginxOperator, in inputs) *corev1.Service {
	service := assets.Service()
	service.ObjectMeta = childMeta(object, in)
	service.Spec.Selector = metadata.Selector(object.Name)
	template := service.Spec.Ports[0]
	service.Spec.Ports = nil
	for _, port := range servedPorts(&object.Spec, in.running) {
		declared := template
		declared.Name, declared.Port, declared.TargetPort = port.name, port.number, intstr.FromString(port.target)
		declared.AppProtocol = ptr.To(port.appProtocol)
		service.Spec.Ports = append(service.Spec.Ports, declared)
	}
	if form := object.Spec.Service; form != nil {
		if form.Type != "" {
			service.Spec.Type = form.Type
		}
		service.Labels = withUsers(form.Labels, service.Labels)
		service.Annotations = withUsers(form.Annotations, service.Annotations)
		service.Spec.LoadBalancerClass = form.LoadBalancerClass
		service.Spec.ExternalTrafficPolicy = form.ExternalTrafficPolicy
	}
	return service
}

// withUsers returns the labels or annotations of the operator with those of the user beside them. The operator's win,
// and keys of its own domain are not the user's to set.
func withUsers(users, operators map[string]string) map[string]string {
	out := map[string]string{}
	for key, value := range users {
		if !metadata.IsReserved(key) {
			out[key] = value
		}
	}
	maps.Copy(out, operators)
	if len(out) == 0 {
		return nil
	}
	return out
}
