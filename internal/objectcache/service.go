package objectcache

import (
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/example/nginx-operator/internal/cached"
)

// slimService keeps the names and numbers of the ports, and the addresses of the load balancer.
func slimService(service *corev1.Service) {
	slimChild(service)
	spec := corev1.ServiceSpec{}
	for _, port := range service.Spec.Ports[:min(len(service.Spec.Ports), cached.MaxPorts)] {
		kept := corev1.ServicePort{Name: port.Name, Port: port.Port, NodePort: port.NodePort}
		if port.AppProtocol != nil && len(*port.AppProtocol) <= maxName {
			kept.AppProtocol = port.AppProtocol
		}
		spec.Ports = append(spec.Ports, kept)
	}

	addresses := cached.BalancerAddresses(service)
	if addresses != nil {
		spec.Type = corev1.ServiceTypeLoadBalancer
	}

	service.Spec, service.Status = spec, corev1.ServiceStatus{LoadBalancer: corev1.LoadBalancerStatus{Ingress: addresses}}
}

// slimEndpointSlice keeps the ports and the name of the Service.
func slimEndpointSlice(slice *discoveryv1.EndpointSlice) {
	labels := pick(slice.Labels, maxName, discoveryv1.LabelServiceName, discoveryv1.LabelManagedBy)
	slimChild(slice)
	slice.Labels = labels
	slice.Endpoints, slice.Ports = nil, slice.Ports[:min(len(slice.Ports), cached.MaxPorts)]
}
