package migrate

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/defaults"
	"github.com/example/nginx-operator/internal/nginxconf"
)

// findService returns the Service that selects Pods with these labels, or nil if no Service does. A
// headless Service is the last choice.
func findService(manifests []*unstructured.Unstructured, namespace string, podLabels map[string]string) *unstructured.Unstructured {
	var found *unstructured.Unstructured
	for _, one := range manifests {
		selector, _, err := unstructured.NestedStringMap(one.Object, "spec", "selector")
		if one.GetKind() != "Service" || one.GetNamespace() != namespace || err != nil || len(selector) == 0 ||
			!labels.SelectorFromSet(selector).Matches(labels.Set(podLabels)) {
			continue
		}
		if address, _, _ := unstructured.NestedString(one.Object, "spec", "clusterIP"); address != corev1.ClusterIPNone {
			return one
		}
		found = cmp.Or(found, one)
	}
	return found
}

// containerPorts converts the ports of the nginx container. It omits ports other than TCP.
func containerPorts(ports []source) []corev1.ContainerPort {
	var out []corev1.ContainerPort
	for _, port := range ports {
		var one corev1.ContainerPort
		port.into(&one.Name, "name")
		port.into(&one.ContainerPort, "containerPort")
		if protocol := port.text("protocol"); protocol != "" && protocol != string(corev1.ProtocolTCP) {
			port.lose("protocol", fmt.Sprintf("%s: %s, so port %d is omitted", protocol, onlyTCP, one.ContainerPort))
			continue
		}
		port.rest()
		out = append(out, one)
	}
	return out
}

// service converts a Service and the container ports that it targets. The manifest is nil if there
// is no Service.
func (r *Result) service(manifest *unstructured.Unstructured, ports []source) {
	spec, listens := &r.Object.Spec, containerPorts(ports)
	if manifest == nil {
		for _, port := range listens {
			spec.Ports = append(spec.Ports, v1alpha2.Port{Name: nameOf(port.Name, port.ContainerPort, len(listens)), Port: port.ContainerPort})
		}
		r.setProtocols()
		return
	}
	from := newSource(manifest, &r.notes)
	spec.Ports = r.servicePorts(from.in("spec").list("ports"), listens)
	r.setProtocols()
	r.closedPorts(listens, manifest.GetName())

	var out v1alpha2.Service
	from.into(&out.Annotations, "metadata", "annotations")
	from.into(&out.Labels, "metadata", "labels")
	out.Annotations = r.usersOwn(from.path+".metadata.annotations", out.Annotations)
	out.Labels = r.usersOwn(from.path+".metadata.labels", out.Labels)
	inner := from.in("spec")
	r.serviceAddresses(inner)
	inner.all(&out)
	setServiceDefaults(&out)
	if !equality.Semantic.DeepEqual(out, v1alpha2.Service{}) {
		spec.Service = &out
	}
	from.rest()
}

// serviceAddresses removes the fields of a Service that the API server sets, and those that no
// field of spec.service supports.
func (r *Result) serviceAddresses(service source) {
	switch address := service.text("clusterIP"); address {
	case "":
	case corev1.ClusterIPNone:
		service.lose("clusterIP", "the operator's Service has an address; create a headless Service with the selector of the new Pods yourself")
	default:
		r.check("%s.clusterIP: the new Service has another address. To keep the Service and its address, see docs/journeys/move-a-deployment.md",
			service.path)
	}
	service.drop("selector", "clusterIPs", "healthCheckNodePort")
	service.dropDefault(map[string]any{"allocateLoadBalancerNodePorts": true})
	if service.fields["allocateLoadBalancerNodePorts"] == false {
		service.lose("allocateLoadBalancerNodePorts", whyNot("allocateLoadBalancerNodePorts"))
	}
	affinity := service.in("sessionAffinityConfig", "clientIP")
	affinity.dropDefault(map[string]any{"timeoutSeconds": int64(corev1.DefaultClientIPServiceAffinitySeconds)})
	if len(affinity.fields) == 0 {
		service.drop("sessionAffinityConfig")
	}
}

// setServiceDefaults removes the API server's defaults.
func setServiceDefaults(out *v1alpha2.Service) {
	if out.Type == corev1.ServiceTypeClusterIP {
		out.Type = ""
	}
	if out.SessionAffinity == corev1.ServiceAffinityNone {
		out.SessionAffinity = ""
	}
	if out.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyCluster {
		out.ExternalTrafficPolicy = ""
	}
	if out.InternalTrafficPolicy != nil && *out.InternalTrafficPolicy == corev1.ServiceInternalTrafficPolicyCluster {
		out.InternalTrafficPolicy = nil
	}
	if out.IPFamilyPolicy != nil && *out.IPFamilyPolicy == corev1.IPFamilyPolicySingleStack {
		out.IPFamilyPolicy, out.IPFamilies = nil, nil
	}
}

func (r *Result) servicePorts(ports []source, listens []corev1.ContainerPort) []v1alpha2.Port {
	var out []v1alpha2.Port
	for _, port := range ports {
		one := v1alpha2.Port{}
		var target intstr.IntOrString
		port.into(&one.Port, "port")
		port.into(&one.NodePort, "nodePort")
		port.into(&one.AppProtocol, "appProtocol")
		port.into(&target, "targetPort")
		one.Name = nameOf(port.text("name"), one.Port, len(ports))
		if protocol := port.text("protocol"); protocol != "" && protocol != string(corev1.ProtocolTCP) {
			port.lose("protocol", fmt.Sprintf("%s: %s, so port %d is omitted", protocol, onlyTCP, one.Port))
			continue
		}
		number := cmp.Or(target.IntVal, one.Port)
		if target.Type == intstr.String && target.StrVal != "" {
			at := slices.IndexFunc(listens, func(listens corev1.ContainerPort) bool { return listens.Name == target.StrVal })
			if at < 0 {
				port.lose("targetPort", fmt.Sprintf("the nginx container has no TCP port %q, so port %d is omitted", target.StrVal, one.Port))
				continue
			}
			number = listens[at].ContainerPort
		}
		if one.NodePort != nil {
			r.check("%s.nodePort: %d is in use until the old Service is deleted. To create the new one before, remove the nodePort",
				port.path, *one.NodePort)
		}
		port.rest()
		if number != one.Port {
			one.TargetPort = &number
		}
		out = append(out, one)
	}
	return out
}

// setProtocols marks the ports on which the servers of the configuration serve TLS.
func (r *Result) setProtocols() {
	spec := &r.Object.Spec
	if spec.Config == nil {
		return
	}
	listening := nginxconf.Listening(spec.Config.Inline)
	for i := range spec.Ports {
		port := &spec.Ports[i]
		if listening == nil || port.AppProtocol != "" {
			continue
		}
		if _, isTLS := listening(defaults.PortListens(*port)); isTLS {
			port.AppProtocol = "https"
		}
	}
}

// closedPorts records the ports of the nginx container that the Service does not have.
func (r *Result) closedPorts(listens []corev1.ContainerPort, service string) {
	open := defaults.ListenPorts(&r.Object.Spec)
	for _, port := range listens {
		if !slices.Contains(open, port.ContainerPort) {
			r.check("container port %d is not a port of Service %s, and the operator's NetworkPolicy closes it; if clients use it, add it to "+
				"spec.ports", port.ContainerPort, service)
		}
	}
}

// nameOf returns the name of a port, or a default name if the port has none. of is the number of
// ports.
func nameOf(name string, number int32, of int) string {
	switch {
	case name != "":
		return name
	case of == 1:
		return v1alpha2.DefaultPortName
	}
	return fmt.Sprintf("port-%d", number)
}
