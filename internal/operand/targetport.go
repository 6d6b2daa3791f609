package operand

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/example/nginx-operator/internal/cached"
	"github.com/example/nginx-operator/internal/wellknown"
)

// servicePorts returns the annotation with the container ports whose number differs from that in
// the Service, or "". With it each Pod shows which numbers it serves, also after a change.
func servicePorts(ports []declaredPort) string {
	var pairs []string
	for _, port := range ports {
		if port.Number != port.Listens {
			pairs = append(pairs, fmt.Sprintf("%s=%d", port.target, port.Number))
		}
	}
	return strings.Join(pairs, ",")
}

// ContainerPortsOf returns the ports of the nginx container in a Pod or Pod template.
func ContainerPortsOf(annotations map[string]string, spec *corev1.PodSpec) []ContainerPort {
	numbers := map[string]int32{}
	if text := annotations[wellknown.AnnotationServicePorts]; len(text) <= wellknown.MaxServicePorts {
		for pair := range strings.SplitSeq(text, ",") {
			name, number, _ := strings.Cut(pair, "=")
			if n, err := strconv.ParseUint(number, 10, 16); err == nil && n > 0 {
				numbers[name] = int32(n) //nolint:gosec // it has 16 bits
			}
		}
	}

	var ports []ContainerPort
	for _, port := range cached.ServingPorts(annotations, spec) {
		ports = append(ports, ContainerPort{port.Name, cmp.Or(numbers[port.Name], port.ContainerPort), port.ContainerPort})
	}
	return ports
}

// keepNodePorts leaves a node port that moves to another port of the Service on the old port until
// all remaining Pods serve the new one. A node port has one container port, and needs Pods.
func keepNodePorts(ports []corev1.ServicePort, now Running) {
	kept := map[int32]int32{}
	for i := range ports {
		port := &ports[i]
		if port.NodePort == 0 || now.pods == 0 || now.everywhere.Has(port.Port) {
			continue
		}
		for _, live := range now.Service {
			if live.NodePort == port.NodePort && live.Port != port.Port && Serves(ports, live.Port) {
				kept[live.Port], port.NodePort = live.NodePort, 0
				break
			}
		}
	}

	for i := range ports {
		ports[i].NodePort = cmp.Or(kept[ports[i].Port], ports[i].NodePort)
	}
}
