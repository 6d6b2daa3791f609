package objectcache

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/example/nginx-operator/internal/cached"
)

// slimService keeps the names and numbers of the ports, and the addresses of the load balancer.
func slimService(in any) (any, error) {
	if service, ok := in.(*corev1.Service); ok {
		slimChild(service, &service.ObjectMeta)
		var ports []corev1.ServicePort
		for _, port := range service.Spec.Ports[:min(len(service.Spec.Ports), maxPorts)] {
			protocol := port.AppProtocol
			if protocol != nil && len(*protocol) > maxName {
				protocol = nil
			}
			ports = append(ports, corev1.ServicePort{Name: port.Name, Port: port.Port, NodePort: port.NodePort, AppProtocol: protocol})
		}
		ingress := cached.BalancerAddresses(service)
		spec := corev1.ServiceSpec{Ports: slices.Clip(ports)}
		if ingress != nil {
			spec.Type = corev1.ServiceTypeLoadBalancer
		}
		service.Spec, service.Status = spec, corev1.ServiceStatus{LoadBalancer: corev1.LoadBalancerStatus{Ingress: ingress}}
	}
	return in, nil
}

// slimEndpointSlice keeps the ports and the name of the Service.
func slimEndpointSlice(in any) (any, error) {
	if slice, ok := in.(*discoveryv1.EndpointSlice); ok {
		labels := map[string]string{}
		for _, key := range []string{discoveryv1.LabelServiceName, discoveryv1.LabelManagedBy} {
			if value, found := slice.Labels[key]; found {
				labels[key] = value
			}
		}
		slimChild(slice, &slice.ObjectMeta)
		slice.Labels = labels
		slice.Endpoints, slice.Ports = nil, slices.Clip(slice.Ports[:min(len(slice.Ports), maxPorts)])
	}
	return in, nil
}
