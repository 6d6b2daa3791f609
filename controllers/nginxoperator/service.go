package nginxoperator

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/defaults"
	"github.com/example/nginx-operator/internal/wellknown"
)

// desiredService returns the address of the server. The target ports are named, so that during a move to another port each Pod is
// reached on the port that it listens on.
func desiredService(object *v1alpha2.NginxOperator, in inputs) *corev1.Service {
	service := &corev1.Service{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		ObjectMeta: childMeta(object, in),
		Spec:       corev1.ServiceSpec{Type: defaults.ServiceType(&object.Spec), Selector: wellknown.Selector(object.Name)},
	}
	for _, port := range servedPorts(&object.Spec, in.running) {
		service.Spec.Ports = append(service.Spec.Ports, corev1.ServicePort{
			Name: port.name, Port: port.number, TargetPort: intstr.FromString(port.target),
			Protocol: corev1.ProtocolTCP, AppProtocol: ptr.To(port.appProtocol), NodePort: port.nodePort,
		})
	}
	if form := object.Spec.Service; form != nil {
		service.Labels = withUsers(form.Labels, service.Labels)
		service.Annotations = withUsers(form.Annotations, service.Annotations)
		service.Spec.LoadBalancerClass = form.LoadBalancerClass
		service.Spec.ExternalTrafficPolicy = form.ExternalTrafficPolicy
		service.Spec.InternalTrafficPolicy = form.InternalTrafficPolicy
		service.Spec.SessionAffinity = form.SessionAffinity
		service.Spec.LoadBalancerSourceRanges = form.LoadBalancerSourceRanges
		service.Spec.IPFamilyPolicy = form.IPFamilyPolicy
		service.Spec.IPFamilies = form.IPFamilies
	}
	return service
}

// withUsers returns the labels or annotations of the operator with those of the user beside them. The operator's win,
// and keys of its own domain are not the user's to set.
func withUsers(users, operators map[string]string) map[string]string {
	out := map[string]string{}
	for key, value := range users {
		if !wellknown.IsReserved(key) {
			out[key] = value
		}
	}
	maps.Copy(out, operators)
	if len(out) == 0 {
		return nil
	}
	return out
}
