package operand

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/defaults"
)

// HealthPort is the name of the container port for probes. The Service and the probes use names, so
// that Pods with different port numbers can serve at the same time.
const HealthPort = "health"

// certificatePort is the start of the name of a port of spec.tls in the Service.
const certificatePort = "tls-"

// declaredPort is a declared port of the Service.
type declaredPort struct {
	defaults.ServicePort
	// target is the name of the container port.
	target string
}

// declaredPorts returns the ports of spec.ports, then the ports of spec.tls.
func declaredPorts(spec *v1alpha2.NginxOperatorSpec, now Running) []declaredPort {
	var ports []declaredPort
	for _, port := range defaults.ServicePorts(spec) {
		port.Name = cmp.Or(port.Name, fmt.Sprint(certificatePort, port.Number))
		ports = append(ports, declaredPort{ServicePort: port})
	}

	setTargets(ports, now.Containers)
	return ports
}

// setTargets names the container ports. A name belongs to its number while Pods have it, even after
// a rename of the port. Therefore requests reach the right number, and a rename restarts no Pods.
func setTargets(ports []declaredPort, containers []ContainerPort) {
	names, taken := namesOf(containers), sets.New(HealthPort)
	for i := range ports {
		if name, runs := names[ports[i].Number]; runs && !taken.Has(name) {
			ports[i].target = name
			taken.Insert(name)
		}
	}
	for i := range ports {
		port := &ports[i]
		if port.target == "" {
			port.target = freeName(port.Name, port.Number, func(name string) bool {
				return taken.Has(name) || slices.ContainsFunc(containers, func(other ContainerPort) bool {
					return other.Name == name && other.Number != port.Number
				})
			})
			taken.Insert(port.target)
		}
	}
}

// namesOf returns the names of container ports by the number that they serve, without HealthPort.
func namesOf(containers []ContainerPort) map[int32]string {
	names := map[int32]string{}
	for _, port := range containers {
		if names[port.Number] == "" && port.Name != "" && port.Name != HealthPort {
			names[port.Number] = port.Name
		}
	}
	return names
}

// freeName returns the preferred name, or a name with the number if the preferred name is taken.
func freeName(preferred string, number int32, taken func(string) bool) string {
	name, prefix := preferred, "p"
	for i := 1; taken(name); i++ {
		name = fmt.Sprintf("%s-%d", prefix, number)
		prefix = fmt.Sprint("p", i)
	}
	return name
}

// leavingPorts returns the ports that are no longer declared, but that Pods still serve.
func leavingPorts(declared []corev1.ServicePort, now Running) []corev1.ServicePort {
	numbers, names := numbersAndNames(declared)
	var leaving []corev1.ServicePort
	targets := namesOf(now.Containers)
	for _, port := range now.Service {
		target, runs := targets[port.Port]
		if !runs || numbers.Has(port.Port) {
			continue
		}

		name := freeName(port.Name, port.Port, names.Has)
		numbers.Insert(port.Port)
		names.Insert(name)
		leaving = append(leaving, corev1.ServicePort{
			Name: name, TargetPort: intstr.FromString(target), Port: port.Port, Protocol: corev1.ProtocolTCP,
			AppProtocol: orNil(ptr.Deref(port.AppProtocol, "")),
		})
	}

	return leaving
}

// numbersAndNames returns the numbers and the names of ports of a Service.
func numbersAndNames(ports []corev1.ServicePort) (numbers sets.Set[int32], names sets.Set[string]) {
	numbers, names = sets.New[int32](), sets.New[string]()
	for _, port := range ports {
		numbers.Insert(port.Port)
		names.Insert(port.Name)
	}
	return numbers, names
}

// withComing adds the ports of new Pods to the ports of the entrance, once ready Pods serve them. A
// number of both is that of the entrance. Then it removes the ports that no Pod serves any more.
func withComing(entrance, pods []corev1.ServicePort, now Running) []corev1.ServicePort {
	coming := slices.DeleteFunc(slices.Clone(pods), func(port corev1.ServicePort) bool {
		return Serves(entrance, port.Port) || !now.ready.Has(port.Port)
	})
	if len(coming) == 0 {
		return slices.Clone(entrance)
	}

	served := namesOf(now.Containers)
	stay := slices.DeleteFunc(slices.Clone(entrance), func(port corev1.ServicePort) bool { return served[port.Port] == "" })
	_, names := numbersAndNames(stay)
	for i := range coming {
		port := &coming[i]
		port.Name = freeName(port.Name, port.Port, names.Has)
		names.Insert(port.Name)
		if slices.ContainsFunc(stay, func(other corev1.ServicePort) bool { return other.NodePort == port.NodePort }) {
			port.NodePort = 0
		}
	}

	return append(stay, coming...)
}

// servedPorts returns all ports of the Service: those of the entrance, those that ready new Pods
// serve, and the others that Pods serve. It reports whether one has a temporary name.
func servedPorts(entrance, pods []corev1.ServicePort, now Running) (ports []corev1.ServicePort, hasInterim bool) {
	ports = withComing(entrance, pods, now)
	ports = append(ports, leavingPorts(ports, now)...)
	hasInterim = interim(ports, now.Service)
	keepNodePorts(ports, now)
	return ports, hasInterim
}

// Serves reports whether a Service has a port with this number.
func Serves(ports []corev1.ServicePort, number int32) bool {
	return slices.ContainsFunc(ports, func(port corev1.ServicePort) bool { return port.Port == number })
}

// interim gives a port a temporary name while another port of the live Service has its name, and
// reports whether it did. A name must never represent the endpoints of two ports.
func interim(ports, live []corev1.ServicePort) (renamed bool) {
	numbers, names := numbersAndNames(ports)
	owner := map[string]int32{}
	for _, port := range live {
		names.Insert(port.Name)
		if numbers.Has(port.Port) {
			owner[port.Name] = port.Port
		}
	}

	for i := range ports {
		if number, used := owner[ports[i].Name]; used && number != ports[i].Port {
			ports[i].Name = freeName(ports[i].Name, ports[i].Port, names.Has)
			names.Insert(ports[i].Name)
			renamed = true
		}
	}

	return renamed
}
