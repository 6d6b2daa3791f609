package operand

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/defaults"
	"github.com/example/nginx-operator/internal/wellknown"
)

// DesiredService returns the Service with the declared ports. Its target ports are names, so that
// each Pod receives requests on its own port number during a change of numbers.
func DesiredService(object *v1alpha2.NginxOperator, in Inputs) *corev1.Service {
	service := &corev1.Service{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		ObjectMeta: ObjectMeta(object, in),
		Spec:       corev1.ServiceSpec{Type: defaults.ServiceType(&object.Spec), Selector: wellknown.Selector(object.Name)},
	}

	for _, port := range declaredPorts(&object.Spec, in.Running) {
		service.Spec.Ports = append(service.Spec.Ports, corev1.ServicePort{
			Name: port.Name, Port: port.Number, TargetPort: intstr.FromString(port.target),
			Protocol: corev1.ProtocolTCP, AppProtocol: orNil(port.AppProtocol), NodePort: port.NodePort,
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

// withUsers merges the labels or annotations of the user into the operator's. It drops the user's
// keys that the operator sets or that are in its domain.
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
