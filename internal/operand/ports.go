package operand

import (
	"fmt"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/defaults"
)

// HealthPort is the name of the container port for probes. The Service and the probes use names of
// container ports, so that Pods with different port numbers can serve at the same time.
const HealthPort = "health"

// certificatePort is the start of the name of a port of spec.tls in the Service.
const certificatePort = "tls-"

// declaredPort is a declared port of the Service.
type declaredPort struct {
	// name is the name in the Service, and target the name of the container port.
	name, target string
	// number is the number in the Service, listens the number in new Pods, and nodePort the
	// declared node port, or 0.
	number, listens, nodePort int32
	appProtocol               string
}

// declaredPorts returns the declared ports, first the ports of spec.ports, then the ports of
// spec.tls, each with its container port.
func declaredPorts(spec *v1alpha2.NginxOperatorSpec, now Running) []declaredPort {
	var out []declaredPort
	for _, port := range defaults.ServicePorts(spec) {
		name := port.Name
		if name == "" {
			name = certificatePort + strconv.FormatInt(int64(port.Number), 10)
		}
		out = append(out, declaredPort{
			name: name, number: port.Number, listens: port.Listens, nodePort: port.NodePort, appProtocol: port.AppProtocol,
		})
	}
	setTargets(out, now.Containers)
	return out
}

// setTargets names the container ports. A name belongs to its number while Pods have it, even after
// a rename of the port. Therefore requests reach the right number, and a rename restarts no Pods.
func setTargets(ports []declaredPort, containers []ContainerPort) {
	names, taken := namesOf(containers), sets.New(HealthPort)
	for i := range ports {
		if name, found := names[ports[i].number]; found && !taken.Has(name) {
			ports[i].target = name
			taken.Insert(name)
		}
	}
	for i := range ports {
		port := &ports[i]
		if port.target == "" {
			port.target = freeName(port.name, port.number, func(name string) bool {
				return taken.Has(name) || isOfOther(containers, name, port.number)
			})
			taken.Insert(port.target)
		}
	}
}

// namesOf returns the names of container ports by the number that they serve, without the port for
// probes.
func namesOf(containers []ContainerPort) map[int32]string {
	out := map[int32]string{}
	for _, port := range containers {
		if _, found := out[port.Number]; !found && port.Name != "" && port.Name != HealthPort {
			out[port.Number] = port.Name
		}
	}
	return out
}

// isOfOther reports whether Pods use a name for another number.
func isOfOther(containers []ContainerPort, name string, number int32) bool {
	for _, port := range containers {
		if port.Name == name && port.Number != number {
			return true
		}
	}
	return false
}

// freeName returns the preferred name, or a name with the number if the preferred name is taken.
func freeName(preferred string, number int32, taken func(string) bool) string {
	name := preferred
	for i := 0; taken(name); i++ {
		name = fmt.Sprintf("p%s-%d", numbered(i), number)
	}
	return name
}

// numbered returns a number as text, or "" for 0.
func numbered(i int) string {
	if i == 0 {
		return ""
	}
	return strconv.Itoa(i)
}

// leavingPorts returns the ports that are no longer declared, but that Pods still serve. They stay
// in the Service until the last of these Pods is gone.
func leavingPorts(declared []corev1.ServicePort, now Running) []corev1.ServicePort {
	numbers, names := sets.New[int32](), sets.New[string]()
	for _, port := range declared {
		numbers.Insert(port.Port)
		names.Insert(port.Name)
	}
	var out []corev1.ServicePort
	targets := namesOf(now.Containers)
	for _, port := range now.Service {
		target, runs := targets[port.Port]
		if !runs || numbers.Has(port.Port) {
			continue
		}
		name := freeName(port.Name, port.Port, names.Has)
		numbers.Insert(port.Port)
		names.Insert(name)
		out = append(out, corev1.ServicePort{
			Name: name, TargetPort: intstr.FromString(target), Port: port.Port, Protocol: corev1.ProtocolTCP,
			AppProtocol: orNil(ptr.Deref(port.AppProtocol, "")),
		})
	}
	return out
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
	out := slices.DeleteFunc(slices.Clone(entrance), func(port corev1.ServicePort) bool { return served[port.Port] == "" })
	names, nodePorts := sets.New[string](), sets.New[int32]()
	for _, port := range out {
		names.Insert(port.Name)
		nodePorts.Insert(port.NodePort)
	}
	for _, port := range coming {
		port.Name = freeName(port.Name, port.Port, names.Has)
		names.Insert(port.Name)
		if nodePorts.Has(port.NodePort) {
			port.NodePort = 0
		}
		out = append(out, port)
	}
	return out
}

// servedPorts returns all ports of the Service: those of the entrance, those that ready new Pods
// serve, and the others that Pods serve. It reports whether one has a temporary name.
func servedPorts(entrance, pods []corev1.ServicePort, now Running) (out []corev1.ServicePort, hasInterim bool) {
	out = withComing(entrance, pods, now)
	out = append(out, leavingPorts(out, now)...)
	hasInterim = interim(out, now.Service)
	keepNodePorts(out, now)
	return out, hasInterim
}

// Serves reports whether a Service has a port with this number.
func Serves(ports []corev1.ServicePort, number int32) bool {
	return slices.ContainsFunc(ports, func(port corev1.ServicePort) bool { return port.Port == number })
}

// interim gives a port a temporary name while another port of the live Service has its name, and
// reports whether it did. A name must never represent the endpoints of two ports.
func interim(ports, live []corev1.ServicePort) (renamed bool) {
	numbers, names := sets.New[int32](), sets.New[string]()
	for _, port := range ports {
		numbers.Insert(port.Port)
		names.Insert(port.Name)
	}
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
