package nginxoperator

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/api/v1alpha2"
)

// ports returns declared ports by name and number, which is one or, as in "80 to 8080", that of the Service and that of nginx.
func ports(pairs ...any) func(*v1alpha2.NginxOperatorSpec) {
	return func(s *v1alpha2.NginxOperatorSpec) {
		s.Ports = []v1alpha2.Port{}
		for i := 0; i < len(pairs); i += 2 {
			number, target := numbersOf(pairs[i+1])
			s.Ports = append(s.Ports, v1alpha2.Port{Name: pairs[i].(string), Port: number, TargetPort: target, Protocol: corev1.ProtocolTCP})
		}
	}
}

func numbersOf(of any) (number int32, target *int32) {
	if number, isOne := of.(int); isOne {
		return int32(number), nil // #nosec G115 -- a port
	}
	target = new(int32)
	if n, err := fmt.Sscanf(of.(string), "%d to %d", &number, target); n != 2 {
		panic(err)
	}
	return number, target
}

// applied returns what runs once the Pods and the Service of an object are as it declares.
func applied(object *v1alpha2.NginxOperator, before running) running {
	in := inputs{image: testImage, running: settled(object, before)}
	template := desiredDeployment(object, in).Spec.Template
	return running{
		containers: slices.Concat(before.containers, containerPortsOf(template.Annotations, &template.Spec)),
		service:    desiredService(object, in).Spec.Ports,
	}
}

// settled returns what runs when the Service has come to its last names.
func settled(object *v1alpha2.NginxOperator, now running) running {
	for range 3 {
		now.service = desiredService(object, inputs{running: now}).Spec.Ports
	}
	return now
}

// shapeOf returns what the Service and the NetworkPolicy of an object look like in the end, and the ports of new Pods.
func shapeOf(object *v1alpha2.NginxOperator, now running) (service, policy, pods []string) {
	in := inputs{image: testImage, running: settled(object, now)}
	for _, port := range desiredService(object, in).Spec.Ports {
		service = append(service, fmt.Sprintf("%s %d->%s", port.Name, port.Port, port.TargetPort.StrVal))
	}
	for _, port := range desiredNetworkPolicy(object, in).Spec.Ingress[0].Ports {
		policy = append(policy, port.Port.StrVal)
	}
	for _, port := range desiredDeployment(object, in).Spec.Template.Spec.Containers[0].Ports {
		pods = append(pods, fmt.Sprintf("%s=%d", port.Name, port.ContainerPort))
	}
	return service, policy, pods
}

// What the children are while Pods of the declaration before still run.
func TestPortsFollowNumbers(t *testing.T) {
	tls := func(secret string, port int32) func(*v1alpha2.NginxOperatorSpec) {
		return func(s *v1alpha2.NginxOperatorSpec) {
			s.TLS = append(s.TLS, v1alpha2.TLS{SecretName: secret, Port: ptr.To(port)})
		}
	}
	type declaration = []func(*v1alpha2.NginxOperatorSpec)
	for name, test := range map[string]struct {
		before, after         declaration
		service, policy, pods []string
	}{
		"nothing": {
			declaration{ports("http", 8080)},
			declaration{ports("http", 8080)},
			[]string{"http 8080->http"},
			[]string{"http", "health"},
			[]string{"http=8080", "health=18080"},
		},
		"rename": {
			declaration{ports("http", 8080)},
			declaration{ports("web", 8080)},
			[]string{"web 8080->http"},
			[]string{"http", "health"},
			[]string{"http=8080", "health=18080"},
		},
		"renumber": {
			declaration{ports("http", 8080)},
			declaration{ports("http", 9090)},
			[]string{"http 9090->p-9090", "p-8080 8080->http"},
			[]string{"p-9090", "http", "health"},
			[]string{"p-9090=9090", "health=18080"},
		},
		"reorder": {
			declaration{ports("http", 8080, "admin", 9000)},
			declaration{ports("admin", 9000, "http", 8080)},
			[]string{"admin 9000->admin", "http 8080->http"},
			[]string{"admin", "http", "health"},
			[]string{"admin=9000", "http=8080", "health=18080"},
		},
		"add": {
			declaration{ports("http", 8080)},
			declaration{ports("http", 8080, "admin", 9000)},
			[]string{"http 8080->http", "admin 9000->admin"},
			[]string{"http", "admin", "health"},
			[]string{"http=8080", "admin=9000", "health=18080"},
		},
		"remove": {
			declaration{ports("http", 8080, "admin", 9000)},
			declaration{ports("http", 8080)},
			[]string{"http 8080->http", "admin 9000->admin"},
			[]string{"http", "admin", "health"},
			[]string{"http=8080", "health=18080"},
		},
		"remove one and give its name to another": {
			declaration{ports("http", 8080, "admin", 9000)},
			declaration{ports("admin", 8080)},
			[]string{"admin 8080->http", "p-9000 9000->admin"},
			[]string{"http", "admin", "health"},
			[]string{"http=8080", "health=18080"},
		},
		"a name like one that is made of a number": {
			declaration{ports("http", 8080)},
			declaration{ports("p-9090", 8080, "http", 9090)},
			[]string{"p-9090 8080->http", "http 9090->p-9090"},
			[]string{"http", "p-9090", "health"},
			[]string{"http=8080", "p-9090=9090", "health=18080"},
		},
		"a certificate more": {
			declaration{ports("http", 8080)},
			declaration{ports("http", 8080), tls("a", 8443)},
			[]string{"http 8080->http", "tls-8443 8443->tls-8443"},
			[]string{"http", "tls-8443", "health"},
			[]string{"http=8080", "tls-8443=8443", "health=18080"},
		},
		"a certificate less": {
			declaration{ports("http", 8080), tls("a", 8443)},
			declaration{ports("http", 8080)},
			[]string{"http 8080->http", "tls-8443 8443->tls-8443"},
			[]string{"http", "tls-8443", "health"},
			[]string{"http=8080", "health=18080"},
		},
		"the number of the probes": {
			declaration{ports("http", 8080)},
			declaration{ports("http", 18080)},
			[]string{"http 18080->p-18080", "p-8080 8080->http"},
			[]string{"p-18080", "http", "health"},
			[]string{"p-18080=18080", "health=18081"},
		},
		"another target": {
			declaration{ports("http", 8080)},
			declaration{ports("http", "8080 to 9090")},
			[]string{"http 8080->http"},
			[]string{"http", "health"},
			[]string{"http=9090", "health=18080"},
		},
		"another target of a port that had one": {
			declaration{ports("http", "80 to 8080")},
			declaration{ports("web", "80 to 9090")},
			[]string{"web 80->http"},
			[]string{"http", "health"},
			[]string{"http=9090", "health=18080"},
		},
		"no target any more": {
			declaration{ports("http", "80 to 8080")},
			declaration{ports("http", 80)},
			[]string{"http 80->http"},
			[]string{"http", "health"},
			[]string{"http=80", "health=18080"},
		},
		"another number to the same target": {
			declaration{ports("http", 8080)},
			declaration{ports("http", "80 to 8080")},
			[]string{"http 80->p-80", "p-8080 8080->http"},
			[]string{"p-80", "http", "health"},
			[]string{"p-80=8080", "health=18080"},
		},
		"two targets change places": {
			declaration{ports("http", "80 to 8080", "admin", "81 to 8081")},
			declaration{ports("http", "80 to 8081", "admin", "81 to 8080")},
			[]string{"http 80->http", "admin 81->admin"},
			[]string{"http", "admin", "health"},
			[]string{"http=8081", "admin=8080", "health=18080"},
		},
		"a target that is the number of another port": {
			declaration{ports("http", 8080)},
			declaration{ports("web", "80 to 8080", "http", "8080 to 80")},
			[]string{"web 80->web", "http 8080->http"},
			[]string{"web", "http", "health"},
			[]string{"web=8080", "http=80", "health=18080"},
		},
		"no plain HTTP any more": {
			declaration{ports("http", 8080), tls("a", 8443)},
			declaration{ports(), tls("a", 8443)},
			[]string{"tls-8443 8443->tls-8443", "http 8080->http"},
			[]string{"tls-8443", "http", "health"},
			[]string{"tls-8443=8443", "health=18080"},
		},
		"plain HTTP again": {
			declaration{ports(), tls("a", 8443)},
			declaration{ports("http", 8080), tls("a", 8443)},
			[]string{"http 8080->http", "tls-8443 8443->tls-8443"},
			[]string{"http", "tls-8443", "health"},
			[]string{"http=8080", "tls-8443=8443", "health=18080"},
		},
		"the target of the probes": {
			declaration{ports("http", 80)},
			declaration{ports("http", "80 to 18080")},
			[]string{"http 80->http"},
			[]string{"http", "health"},
			[]string{"http=18080", "health=18081"},
		},
		"a number to the probes": {
			declaration{ports("http", 18080)},
			declaration{ports("http", 8080)},
			[]string{"http 8080->p-8080", "p-18080 18080->http"},
			[]string{"p-8080", "http", "health"},
			[]string{"p-8080=8080", "health=18080"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			first := applied(newObject(test.before...), running{})
			service, policy, pods := shapeOf(newObject(test.after...), first)
			for what, diff := range map[string]string{
				"Service": cmp.Diff(test.service, service), "NetworkPolicy": cmp.Diff(test.policy, policy), "Pods": cmp.Diff(test.pods, pods),
			} {
				if diff != "" {
					t.Errorf("%s (-want +got):\n%s", what, diff)
				}
			}
			// The next reconcile, with Pods of both declarations, finds nothing to change.
			both := applied(newObject(test.after...), first)
			again, policyAgain, podsAgain := shapeOf(newObject(test.after...), both)
			if diff := cmp.Diff(pods, podsAgain) + cmp.Diff(service, again) + cmp.Diff(policy, policyAgain); diff != "" {
				t.Errorf("another reconcile (-first +second):\n%s", diff)
			}
			// Once the old Pods are gone, only what is declared is left, and no Pod changes for it.
			alone := running{containers: both.containers[len(first.containers):], service: both.service}
			last, _, podsLast := shapeOf(newObject(test.after...), alone)
			if diff := cmp.Diff(pods, podsLast); diff != "" {
				t.Errorf("the end of the old Pods changes the new ones:\n%s", diff)
			}
			if declared := declaredPorts(&newObject(test.after...).Spec, alone); len(last) != len(declared) {
				t.Errorf("at the end the Service has %v", last)
			}
		})
	}
}

// Whatever is declared after what, container ports have names that differ, and no Pod is reached under a name on another number.
func TestContainerPortsAreOnesOwn(t *testing.T) {
	declarations := [][]any{
		{"http", 8080},
		{"web", 8080},
		{"http", 9090},
		{"http", 9090, "web", 8080},
		{"web", 9090, "http", 8080},
		{"p-8080", 9090, "p-9090", 8080},
		{"http", 18080, "web", 18081},
		{"http", 8081, "web", 18080, "p-8080", 80},
		{"http", "80 to 8080"},
		{"http", "80 to 9090"},
		{"http", "8080 to 9090", "web", "9090 to 8080"},
		{"p-80", "8080 to 80", "http", "80 to 8080"},
	}
	for _, a := range declarations {
		for _, b := range declarations {
			for _, c := range declarations {
				now := applied(newObject(ports(c...)), applied(newObject(ports(b...)), applied(newObject(ports(a...)), running{})))
				numbers := map[string]int32{}
				for _, port := range now.containers {
					if number, found := numbers[port.name]; found && number != port.number && port.name != portHealth {
						t.Errorf("%v, %v, %v: %s is of %d and %d", a, b, c, port.name, number, port.number)
					}
					numbers[port.name] = port.number
				}
				names, served := map[string]bool{}, map[int32]bool{}
				for _, port := range now.service {
					if names[port.Name] || served[port.Port] || numbers[port.TargetPort.StrVal] != port.Port {
						t.Errorf("%v, %v, %v: Service port %s %d to %s", a, b, c, port.Name, port.Port, port.TargetPort.StrVal)
					}
					names[port.Name], served[port.Port] = true, true
				}
				for _, all := range [][]any{a, b, c} {
					for i := 1; i < len(all); i += 2 {
						if number, _ := numbersOf(all[i]); !served[number] {
							t.Errorf("%v, %v, %v: %d is not served, and Pods of all three run", a, b, c, number)
						}
					}
				}
			}
		}
	}
}

// No name stands for two ports at any step of the way from one Service to another, and the way ends.
func TestNamesGoRoundInSteps(t *testing.T) {
	declarations := [][]any{
		{"http", 8080, "admin", 9000},
		{"admin", 8080, "http", 9000},
		{"a", 1, "b", 2, "c", 3},
		{"b", 1, "c", 2, "a", 3},
		{"http", 9000},
		{"web", 8080, "http", 9000},
	}
	for _, before := range declarations {
		for _, after := range declarations {
			object := newObject(ports(after...))
			now := applied(newObject(ports(before...)), running{})
			for step := 0; ; step++ {
				next := desiredService(object, inputs{running: now}).Spec.Ports
				for _, was := range now.service {
					for _, is := range next {
						stays := slices.ContainsFunc(next, func(p corev1.ServicePort) bool { return p.Port == was.Port })
						if was.Name == is.Name && was.Port != is.Port && stays {
							t.Errorf("%v to %v, step %d: %s goes from %d to %d at once", before, after, step, is.Name, was.Port, is.Port)
						}
					}
				}
				if cmp.Equal(next, now.service) {
					break
				}
				if step == 3 {
					t.Fatalf("%v to %v does not end", before, after)
				}
				now.service = next
			}
			for _, port := range declaredPorts(&object.Spec, now) {
				if !slices.ContainsFunc(now.service, func(p corev1.ServicePort) bool { return p.Name == port.name && p.Port == port.number }) {
					t.Errorf("%v to %v: in the end there is no %s %d", before, after, port.name, port.number)
				}
			}
		}
	}
}

// A bridge has all ports of the Pods of which one is renamed, and goes when others have what the Service asks for and nothing else.
func TestBridge(t *testing.T) {
	slice := func(pairs ...any) discoveryv1.EndpointSlice {
		out := discoveryv1.EndpointSlice{AddressType: discoveryv1.AddressTypeIPv4}
		out.Endpoints = []discoveryv1.Endpoint{{Addresses: []string{"192.0.2.7"}}}
		out.Namespace, out.Name = "shop", "web-1"
		for pair := range slices.Chunk(pairs, 2) {
			number := int32(pair[1].(int)) // #nosec G115 G602 -- a port, and names and numbers come in pairs
			out.Ports = append(out.Ports, discoveryv1.EndpointPort{Name: ptr.To(pair[0].(string)), Port: &number})
		}
		return out
	}
	object := newObject(ports("web", 8080, "admin", 9000))
	before := applied(newObject(ports("http", 8080, "admin", 9000)), running{})
	names, renamed := newNames(before.service, servedPorts(&object.Spec, before))
	if diff := cmp.Diff(map[int32]string{8080: "web", 9000: "admin"}, names); diff != "" || !renamed {
		t.Fatalf("names, one of them new: %t (-want +got):\n%s", renamed, diff)
	}
	if _, renamed := newNames(before.service, servedPorts(&newObject(ports("http", 8080, "admin", 9000)).Spec, before)); renamed {
		t.Error("what has its name is renamed")
	}
	source := slice("http", 8080, "admin", 9000)
	bridge := bridgeOf(&source, before.service, names)
	both := map[string]sets.Set[int32]{"web": sets.New[int32](8080), "admin": sets.New[int32](9000)}
	if bridge == nil || bridge.Name != "web-1-renamed" || len(bridge.Endpoints) != 1 ||
		!cmp.Equal(portsOf([]discoveryv1.EndpointSlice{*bridge}), both) {
		t.Fatalf("bridge %+v", bridge)
	}
	if none := slice("admin", 9000); bridgeOf(&none, before.service, names) != nil {
		t.Error("there is a bridge for what is not renamed")
	}
	bridges := []discoveryv1.EndpointSlice{*bridge}
	if !carries(bridges, names, before.containers) || carries(bridges, map[int32]string{8080: "other", 9000: "admin"}, before.containers) ||
		carries(bridges, map[int32]string{8080: "web", 9000: "other"}, before.containers) ||
		carries(bridges, map[int32]string{8080: "admin", 9000: "web"}, before.containers) {
		t.Error("a bridge is taken for another")
	}
	after := settled(object, before)
	done := slice("web", 8080, "admin", 9000)
	for why, controllers := range map[string][]discoveryv1.EndpointSlice{
		"before anybody took over": {source}, "between two EndpointSlices": {done, source}, "without endpoints": nil,
	} {
		if takenOver(bridges, controllers, after.service) {
			t.Errorf("the bridge goes %s", why)
		}
	}
	if !takenOver(bridges, []discoveryv1.EndpointSlice{done}, after.service) ||
		!takenOver(bridges, []discoveryv1.EndpointSlice{source}, before.service) {
		t.Error("the bridge stays for ever")
	}
}
