package nginxoperator

import (
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/example/nginx-operator/internal/operatormanager"
	"github.com/example/nginx-operator/internal/wellknown"
)

// servicePorts returns the value of the annotation that names the container ports whose number is not that of the Service, "" where
// there is none. So each Pod tells by itself what the Service reaches it for, also when that has changed or is gone.
func servicePorts(ports []served) string {
	var out []string
	for _, port := range ports {
		if port.number != port.listens {
			out = append(out, fmt.Sprintf("%s=%d", port.target, port.number))
		}
	}
	return strings.Join(out, ",")
}

// containerPortsOf returns the container ports of a Pod or of a template of Pods.
func containerPortsOf(annotations map[string]string, spec *corev1.PodSpec) []containerPort {
	numbers := map[string]int32{}
	if text := annotations[wellknown.AnnotationServicePorts]; len(text) <= operatormanager.MaxServicePorts {
		for pair := range strings.SplitSeq(text, ",") {
			name, number, _ := strings.Cut(pair, "=")
			if n, err := strconv.ParseUint(number, 10, 16); err == nil && n > 0 {
				numbers[name] = int32(n) //nolint:gosec // it has 16 bits
			}
		}
	}
	var out []containerPort
	for i := range spec.Containers {
		for _, port := range spec.Containers[i].Ports {
			number, found := numbers[port.Name]
			if !found {
				number = port.ContainerPort
			}
			out = append(out, containerPort{port.Name, number, port.ContainerPort})
		}
	}
	return out
}

// addPod counts a Pod that stays.
func (now *running) addPod(ports []containerPort, ready bool, seenReady sets.Set[int32]) {
	numbers := sets.New[int32]()
	for _, port := range ports {
		if port.name != portHealth {
			numbers.Insert(port.number)
		}
	}
	if now.pods == 0 {
		now.everywhere = numbers
	} else {
		now.everywhere = now.everywhere.Intersection(numbers)
	}
	now.pods++
	if ready {
		seenReady.Insert(numbers.UnsortedList()...)
	}
}

// keepNodePorts leaves a node port with the port of the Service that has it, until every Pod that stays serves the port that is to
// have it: a node port reaches one container port only, and no moment may be without Pods behind it.
func keepNodePorts(ports []served, now running) {
	kept, stays := map[int32]int32{}, sets.New[int32]()
	for _, port := range ports {
		stays.Insert(port.number)
	}
	for i := range ports {
		port := &ports[i]
		if port.nodePort == 0 || now.pods == 0 || now.everywhere.Has(port.number) {
			continue
		}
		for _, live := range now.service {
			if live.NodePort == port.nodePort && live.Port != port.number && stays.Has(live.Port) {
				kept[live.Port], port.nodePort = live.NodePort, 0
				break
			}
		}
	}
	for i := range ports {
		if nodePort, found := kept[ports[i].number]; found {
			ports[i].nodePort = nodePort
		}
	}
}
