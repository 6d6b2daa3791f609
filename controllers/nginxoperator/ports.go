package nginxoperator

import (
	"fmt"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/defaults"
)

// portHealth is the name of the container port for probes. The Service, the NetworkPolicy and the probes use the names of
// container ports, so that Pods of two configurations can serve side by side on different ports.
const portHealth = "health"

// served is a port that the Service serves.
type served struct {
	// name is the port's in the Service, the user's choice; target is the name of the container port that serves the number.
	name, target string
	// number is what clients ask for; new Pods listen on another, where the object says so. nodePort is 0 where none is declared.
	number, listens, nodePort int32
	tls                       bool
	appProtocol               string
}

// containerPort is a port of Pods: its name, and the number of the Service that it serves. On which number a Pod listens is its own
// affair: it may be another in each revision.
type containerPort struct {
	name            string
	number, listens int32
}

// running is what Pods listen on and what the Service serves, whatever the object declares by now.
type running struct {
	// containers are the container ports of every Pod that exists and of every revision that wants Pods, the oldest first.
	containers []containerPort
	// service are the ports of the Service, nil where there is none.
	service []corev1.ServicePort
	// pods are the Pods that stay, and everywhere the numbers that each of them serves, one of which is ready.
	pods       int
	everywhere sets.Set[int32]
	// ready are the numbers of the Service that Pods serve which are ready.
	ready sets.Set[int32]
	// exposed is the number of the port that the HTTPRoute or the Ingress asks for, 0 where there is neither.
	exposed int32
}

// declaredPorts returns the ports that have a name, then those of the certificates, each with the container port that serves
// its number.
func declaredPorts(spec *v1alpha2.NginxOperatorSpec, now running) []served {
	var out []served
	for _, port := range defaults.ServicePorts(spec) {
		name := port.Name
		if name == "" {
			name = "tls-" + strconv.FormatInt(int64(port.Number), 10)
		}
		out = append(out, served{
			name: name, number: port.Number, listens: port.Listens, nodePort: port.NodePort, tls: port.TLS, appProtocol: port.AppProtocol,
		})
	}
	setTargets(out, now.containers)
	return out
}

// setTargets names the container ports. A name belongs to its number for as long as Pods have it, whatever the object calls
// the port by now: so a Pod is reached on the number that was asked for, and another name changes no Pod.
func setTargets(ports []served, containers []containerPort) {
	names, taken := namesOf(containers), sets.New(portHealth)
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

// namesOf returns the names of container ports by the number that they serve, without those for probes.
func namesOf(containers []containerPort) map[int32]string {
	out := map[int32]string{}
	for _, port := range containers {
		if _, found := out[port.number]; !found && port.name != "" && port.name != portHealth {
			out[port.number] = port.name
		}
	}
	return out
}

// isOfOther reports whether Pods use a name for another number.
func isOfOther(containers []containerPort, name string, number int32) bool {
	for _, port := range containers {
		if port.name == name && port.number != number {
			return true
		}
	}
	return false
}

// freeName returns the name that is preferred, or one made of the number where that is taken.
func freeName(preferred string, number int32, taken func(string) bool) string {
	name := preferred
	for i := 0; taken(name); i++ {
		name = fmt.Sprintf("p%s-%d", numbered(i), number)
	}
	return name
}

// numbered returns nothing for the first of several.
func numbered(i int) string {
	if i == 0 {
		return ""
	}
	return strconv.Itoa(i)
}

// leavingPorts returns the ports that are no longer declared and that Pods serve all the same. They stay in the Service until
// the last of these Pods is gone.
func leavingPorts(declared []served, now running) []served {
	numbers, names := sets.New[int32](), sets.New[string]()
	for _, port := range declared {
		numbers.Insert(port.number)
		names.Insert(port.name)
	}
	var out []served
	targets := namesOf(now.containers)
	for _, port := range now.service {
		target, runs := targets[port.Port]
		if !runs || numbers.Has(port.Port) {
			continue
		}
		name := freeName(port.Name, port.Port, names.Has)
		numbers.Insert(port.Port)
		names.Insert(name)
		out = append(out, served{name: name, target: target, number: port.Port, appProtocol: ptr.Deref(port.AppProtocol, "http")})
	}
	return out
}

// servedPorts returns all ports of the Service: those that the object declares, and those that Pods still serve.
func servedPorts(spec *v1alpha2.NginxOperatorSpec, now running) []served {
	declared := declaredPorts(spec, now)
	out := slices.Concat(declared, leavingPorts(declared, now))
	interim(out, now.service)
	keepNodePorts(out, now)
	return out
}
