package migrate

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/defaults"
	"github.com/example/nginx-operator/internal/nginxconf"
)

// findService returns a Service that selects the Pods, or nil. A headless one is the last choice.
func (r *Result) findService(podLabels map[string]string) *unstructured.Unstructured {
	var headless *unstructured.Unstructured
	for _, manifest := range r.manifests {
		selector, _, err := unstructured.NestedStringMap(manifest.Object, "spec", "selector")
		isOther := manifest.GetKind() != "Service" || manifest.GetNamespace() != r.Object.Namespace
		if isOther || err != nil || len(selector) == 0 || !labels.SelectorFromSet(selector).Matches(labels.Set(podLabels)) {
			continue
		}
		if address, _, _ := unstructured.NestedString(manifest.Object, "spec", "clusterIP"); address != corev1.ClusterIPNone {
			return manifest
		}

		headless = cmp.Or(headless, manifest)
	}

	return headless
}

func containerPorts(ports []source) []corev1.ContainerPort {
	var converted []corev1.ContainerPort
	for _, from := range ports {
		var port corev1.ContainerPort
		from.pick(&port, "name", "containerPort")
		if isTCP(from, port.ContainerPort) {
			from.rest()
			converted = append(converted, port)
		}
	}
	return converted
}

func isTCP(port source, number int32) bool {
	protocol := cmp.Or(port.text("protocol"), string(corev1.ProtocolTCP))
	if protocol != string(corev1.ProtocolTCP) {
		port.lose("protocol", fmt.Sprintf("%s: %s, so port %d is omitted", protocol, onlyTCP, number))
		return false
	}
	return true
}

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
	inner := from.in("spec")
	spec.Ports = r.servicePorts(inner.list("ports"), listens)
	r.setProtocols()
	r.closedPorts(listens, manifest.GetName())

	service := v1alpha2.Service{
		Annotations: r.usersOwn(from, "metadata", "annotations"), Labels: r.usersOwn(from, "metadata", "labels"),
	}

	r.serviceAddresses(inner)
	inner.dropDefault(map[string]any{
		"type": string(corev1.ServiceTypeClusterIP), "sessionAffinity": string(corev1.ServiceAffinityNone),
		"externalTrafficPolicy": string(corev1.ServiceExternalTrafficPolicyCluster),
		"internalTrafficPolicy": string(corev1.ServiceInternalTrafficPolicyCluster),
	})

	if inner.fields["ipFamilyPolicy"] == string(corev1.IPFamilyPolicySingleStack) {
		inner.drop("ipFamilyPolicy", "ipFamilies")
	}

	inner.all(&service)
	spec.Service = unlessEmpty(service)
	from.rest()
}

// serviceAddresses removes the fields that the API server sets or spec.service does not support.
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

func (r *Result) servicePorts(ports []source, listens []corev1.ContainerPort) []v1alpha2.Port {
	var converted []v1alpha2.Port
	for _, from := range ports {
		var port v1alpha2.Port
		var target intstr.IntOrString
		from.pick(&port, "port", "nodePort", "appProtocol")
		from.into(&target, "targetPort")
		port.Name = nameOf(from.text("name"), port.Port, len(ports))
		if !isTCP(from, port.Port) {
			continue
		}

		number := cmp.Or(target.IntVal, port.Port)
		if target.Type == intstr.String && target.StrVal != "" {
			at := slices.IndexFunc(listens, func(listens corev1.ContainerPort) bool { return listens.Name == target.StrVal })
			if at < 0 {
				from.lose("targetPort", fmt.Sprintf("the nginx container has no TCP port %q, so port %d is omitted",
					target.StrVal, port.Port))
				continue
			}
			number = listens[at].ContainerPort
		}

		if port.NodePort != nil {
			r.check("%s.nodePort: %d is in use until the old Service is deleted. To create the new one before, remove the nodePort",
				from.path, *port.NodePort)
		}

		from.rest()
		if number != port.Port {
			port.TargetPort = &number
		}

		converted = append(converted, port)
	}

	return converted
}

func (r *Result) setProtocols() {
	spec := &r.Object.Spec
	if spec.Config == nil {
		return
	}

	listening := nginxconf.Listening(spec.Config.Inline)
	if listening == nil {
		return
	}

	for i, port := range spec.Ports {
		if _, isTLS := listening(defaults.PortListens(port)); isTLS && port.AppProtocol == "" {
			spec.Ports[i].AppProtocol = "https"
		}
	}
}

func (r *Result) closedPorts(listens []corev1.ContainerPort, service string) {
	open := defaults.ListenPorts(&r.Object.Spec)
	for _, port := range listens {
		if !slices.Contains(open, port.ContainerPort) {
			r.check("container port %d is not a port of Service %s, and the operator's NetworkPolicy closes it; if clients use it, add it to "+
				"spec.ports", port.ContainerPort, service)
		}
	}
}

// nameOf returns the name of one of some ports, or a default name if the port has none.
func nameOf(name string, number int32, ports int) string {
	if ports == 1 {
		return cmp.Or(name, v1alpha2.DefaultPortName)
	}
	return cmp.Or(name, fmt.Sprintf("port-%d", number))
}
