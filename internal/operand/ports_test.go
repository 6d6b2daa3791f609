package operand

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/fixture"
)

// partsFor returns the children of an object for the Pods that run.
func partsFor(object *v1alpha2.NginxOperator, in Inputs) parts {
	children := Desired(object, in)
	return partsOf(Compose(children, children, in.Running).Children)
}

func hasInterim(object *v1alpha2.NginxOperator, now Running) bool {
	children := Desired(object, Inputs{Running: now})
	return Compose(children, children, now).Interim
}

// applied returns the running state after the Pods and the Service of an object match its spec. The
// Pods of the state before are still running.
func applied(object *v1alpha2.NginxOperator, before Running) Running {
	in := Inputs{Image: fixture.Image, Running: settled(object, before)}
	template := DesiredDeployment(object, in).Spec.Template
	ports := slices.Concat(before.Containers, ContainerPortsOf(template.Annotations, &template.Spec))
	return Running{Containers: ports, own: ports, Service: partsFor(object, in).service.Spec.Ports}
}

// settled returns the running state after the names of the Service's ports have reached their final
// form.
func settled(object *v1alpha2.NginxOperator, now Running) Running {
	for range 3 {
		now.Service = partsFor(object, Inputs{Running: now}).service.Spec.Ports
	}
	return now
}

// shapeOf returns the final ports of the Service and of the NetworkPolicy of an object, and the
// ports of its new Pods.
func shapeOf(object *v1alpha2.NginxOperator, now Running) (service []string, policy []int32, pods []string) {
	in := Inputs{Image: fixture.Image, Running: settled(object, now)}
	for _, port := range partsFor(object, in).service.Spec.Ports {
		service = append(service, fmt.Sprintf("%s %d->%s", port.Name, port.Port, port.TargetPort.StrVal))
	}
	for _, port := range partsFor(object, in).policy.Spec.Ingress[0].Ports {
		policy = append(policy, port.Port.IntVal)
	}
	for _, port := range DesiredDeployment(object, in).Spec.Template.Spec.Containers[0].Ports {
		pods = append(pods, fmt.Sprintf("%s=%d", port.Name, port.ContainerPort))
	}
	return service, policy, pods
}

// numbersOf returns the sorted numbers of container ports in the form of shapeOf, and others.
func numbersOf(pods []string, others ...int32) []int32 {
	numbers := sets.New(others...)
	for _, port := range pods {
		_, text, _ := strings.Cut(port, "=")
		number, _ := strconv.ParseInt(text, 10, 32)
		numbers.Insert(int32(number)) //nolint:gosec // it has 32 bits
	}
	return sets.List(numbers)
}

// TestPortsFollowNumbers verifies the ports of the children while Pods of an earlier declaration
// are still running.
func TestPortsFollowNumbers(t *testing.T) {
	tls := func(secret string, port int32) func(*v1alpha2.NginxOperatorSpec) {
		return func(s *v1alpha2.NginxOperatorSpec) {
			s.TLS = append(s.TLS, v1alpha2.TLS{SecretName: secret, Port: ptr.To(port)})
		}
	}
	type declaration = []func(*v1alpha2.NginxOperatorSpec)
	for name, test := range map[string]struct {
		before, after declaration
		service, pods []string
	}{
		"nothing": {
			declaration{fixture.Ports("http", 8080)},
			declaration{fixture.Ports("http", 8080)},
			[]string{"http 8080->http"},
			[]string{"http=8080", "health=18080"},
		},
		"rename": {
			declaration{fixture.Ports("http", 8080)},
			declaration{fixture.Ports("web", 8080)},
			[]string{"web 8080->http"},
			[]string{"http=8080", "health=18080"},
		},
		"renumber": {
			declaration{fixture.Ports("http", 8080)},
			declaration{fixture.Ports("http", 9090)},
			[]string{"http 9090->p-9090", "p-8080 8080->http"},
			[]string{"p-9090=9090", "health=18080"},
		},
		"reorder": {
			declaration{fixture.Ports("http", 8080, "admin", 9000)},
			declaration{fixture.Ports("admin", 9000, "http", 8080)},
			[]string{"admin 9000->admin", "http 8080->http"},
			[]string{"admin=9000", "http=8080", "health=18080"},
		},
		"add": {
			declaration{fixture.Ports("http", 8080)},
			declaration{fixture.Ports("http", 8080, "admin", 9000)},
			[]string{"http 8080->http", "admin 9000->admin"},
			[]string{"http=8080", "admin=9000", "health=18080"},
		},
		"remove": {
			declaration{fixture.Ports("http", 8080, "admin", 9000)},
			declaration{fixture.Ports("http", 8080)},
			[]string{"http 8080->http", "admin 9000->admin"},
			[]string{"http=8080", "health=18080"},
		},
		"remove one and give its name to another": {
			declaration{fixture.Ports("http", 8080, "admin", 9000)},
			declaration{fixture.Ports("admin", 8080)},
			[]string{"admin 8080->http", "p-9000 9000->admin"},
			[]string{"http=8080", "health=18080"},
		},
		"a name like one that is made of a number": {
			declaration{fixture.Ports("http", 8080)},
			declaration{fixture.Ports("p-9090", 8080, "http", 9090)},
			[]string{"p-9090 8080->http", "http 9090->p-9090"},
			[]string{"http=8080", "p-9090=9090", "health=18080"},
		},
		"a certificate more": {
			declaration{fixture.Ports("http", 8080)},
			declaration{fixture.Ports("http", 8080), tls("a", 8443)},
			[]string{"http 8080->http", "tls-8443 8443->tls-8443"},
			[]string{"http=8080", "tls-8443=8443", "health=18080"},
		},
		"a certificate less": {
			declaration{fixture.Ports("http", 8080), tls("a", 8443)},
			declaration{fixture.Ports("http", 8080)},
			[]string{"http 8080->http", "tls-8443 8443->tls-8443"},
			[]string{"http=8080", "health=18080"},
		},
		"the number of the probes": {
			declaration{fixture.Ports("http", 8080)},
			declaration{fixture.Ports("http", 18080)},
			[]string{"http 18080->p-18080", "p-8080 8080->http"},
			[]string{"p-18080=18080", "health=18081"},
		},
		"another target": {
			declaration{fixture.Ports("http", 8080)},
			declaration{fixture.Ports("http", "8080 to 9090")},
			[]string{"http 8080->http"},
			[]string{"http=9090", "health=18080"},
		},
		"another target of a port that had one": {
			declaration{fixture.Ports("http", "80 to 8080")},
			declaration{fixture.Ports("web", "80 to 9090")},
			[]string{"web 80->http"},
			[]string{"http=9090", "health=18080"},
		},
		"no target any more": {
			declaration{fixture.Ports("http", "80 to 8080")},
			declaration{fixture.Ports("http", 80)},
			[]string{"http 80->http"},
			[]string{"http=80", "health=18080"},
		},
		"another number to the same target": {
			declaration{fixture.Ports("http", 8080)},
			declaration{fixture.Ports("http", "80 to 8080")},
			[]string{"http 80->p-80", "p-8080 8080->http"},
			[]string{"p-80=8080", "health=18080"},
		},
		"two targets change places": {
			declaration{fixture.Ports("http", "80 to 8080", "admin", "81 to 8081")},
			declaration{fixture.Ports("http", "80 to 8081", "admin", "81 to 8080")},
			[]string{"http 80->http", "admin 81->admin"},
			[]string{"http=8081", "admin=8080", "health=18080"},
		},
		"a target that is the number of another port": {
			declaration{fixture.Ports("http", 8080)},
			declaration{fixture.Ports("web", "80 to 8080", "http", "8080 to 80")},
			[]string{"web 80->web", "http 8080->http"},
			[]string{"web=8080", "http=80", "health=18080"},
		},
		"no plain HTTP any more": {
			declaration{fixture.Ports("http", 8080), tls("a", 8443)},
			declaration{fixture.Ports(), tls("a", 8443)},
			[]string{"tls-8443 8443->tls-8443", "http 8080->http"},
			[]string{"tls-8443=8443", "health=18080"},
		},
		"plain HTTP again": {
			declaration{fixture.Ports(), tls("a", 8443)},
			declaration{fixture.Ports("http", 8080), tls("a", 8443)},
			[]string{"http 8080->http", "tls-8443 8443->tls-8443"},
			[]string{"http=8080", "tls-8443=8443", "health=18080"},
		},
		"the target of the probes": {
			declaration{fixture.Ports("http", 80)},
			declaration{fixture.Ports("http", "80 to 18080")},
			[]string{"http 80->http"},
			[]string{"http=18080", "health=18081"},
		},
		"a number to the probes": {
			declaration{fixture.Ports("http", 18080)},
			declaration{fixture.Ports("http", 8080)},
			[]string{"http 8080->p-8080", "p-18080 18080->http"},
			[]string{"p-8080=8080", "health=18080"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			first := applied(fixture.NewObject(test.before...), Running{})
			service, policy, pods := shapeOf(fixture.NewObject(test.after...), first)
			if diff := cmp.Diff(test.service, service) + cmp.Diff(test.pods, pods); diff != "" {
				t.Errorf("Service and Pods (-want +got):\n%s", diff)
			}
			var listens []int32
			for _, port := range first.Containers {
				listens = append(listens, port.Listens)
			}
			if diff := cmp.Diff(numbersOf(pods, listens...), policy); diff != "" {
				t.Errorf("the NetworkPolicy does not have the numbers of all Pods (-Pods +NetworkPolicy):\n%s", diff)
			}

			// The next reconcile, with Pods of both declarations, must change nothing.
			both := applied(fixture.NewObject(test.after...), first)
			again, policyAgain, podsAgain := shapeOf(fixture.NewObject(test.after...), both)
			if diff := cmp.Diff(pods, podsAgain) + cmp.Diff(service, again) + cmp.Diff(policy, policyAgain); diff != "" {
				t.Errorf("another reconcile (-first +second):\n%s", diff)
			}
			// Once the old Pods are gone, only the declared ports are left. This must not change
			// the Pod template.
			left := both.Containers[len(first.Containers):]
			alone := Running{Containers: left, own: left, Service: both.Service}
			last, policyLast, podsLast := shapeOf(fixture.NewObject(test.after...), alone)
			if diff := cmp.Diff(pods, podsLast); diff != "" {
				t.Errorf("the end of the old Pods changes the new ones:\n%s", diff)
			}
			if diff := cmp.Diff(numbersOf(podsLast), policyLast); diff != "" {
				t.Errorf("at the end, the NetworkPolicy does not have the numbers of the Pods (-Pods +NetworkPolicy):\n%s", diff)
			}
			if declared := declaredPorts(&fixture.NewObject(test.after...).Spec, alone); len(last) != len(declared) {
				t.Errorf("at the end the Service has %v", last)
			}
		})
	}
}

// TestContainerPortsAreOnesOwn verifies, for every sequence of declarations, that a name of a
// container port has the same number in all Pods, and that the Service reaches every declared port
// by such a name.
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
				now := Running{}
				for _, ports := range [][]any{a, b, c} {
					now = applied(fixture.NewObject(fixture.Ports(ports...)), now)
				}
				numbers := map[string]int32{}
				for _, port := range now.Containers {
					if number, found := numbers[port.Name]; found && number != port.Number && port.Name != HealthPort {
						t.Errorf("%v, %v, %v: %s is of %d and %d", a, b, c, port.Name, number, port.Number)
					}
					numbers[port.Name] = port.Number
				}
				names, served := map[string]bool{}, map[int32]bool{}
				for _, port := range now.Service {
					if names[port.Name] || served[port.Port] || numbers[port.TargetPort.StrVal] != port.Port {
						t.Errorf("%v, %v, %v: Service port %s %d to %s", a, b, c, port.Name, port.Port, port.TargetPort.StrVal)
					}
					names[port.Name], served[port.Port] = true, true
				}
				for _, all := range [][]any{a, b, c} {
					for i := 1; i < len(all); i += 2 {
						if number, _ := fixture.NumbersOf(all[i]); !served[number] {
							t.Errorf("%v, %v, %v: %d is not served, and Pods of all three run", a, b, c, number)
						}
					}
				}
			}
		}
	}
}

// TestNamesGoRoundInSteps verifies that, in each step from one Service to another, no name moves to
// another port while the Service retains the name's previous port. The number of steps is bounded,
// and Interim reports each step that another one follows.
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
			object := fixture.NewObject(fixture.Ports(after...))
			now := applied(fixture.NewObject(fixture.Ports(before...)), Running{})
			for step := 0; ; step++ {
				next := partsFor(object, Inputs{Running: now}).service.Spec.Ports
				for _, was := range now.Service {
					for _, is := range next {
						stays := slices.ContainsFunc(next, func(p corev1.ServicePort) bool { return p.Port == was.Port })
						if was.Name == is.Name && was.Port != is.Port && stays {
							t.Errorf("%v to %v, step %d: %s goes from %d to %d at once", before, after, step, is.Name, was.Port, is.Port)
						}
					}
				}
				if cmp.Equal(next, now.Service) {
					break
				}
				if step == 3 {
					t.Fatalf("%v to %v does not end", before, after)
				}
				isLast := !hasInterim(object, now)
				now.Service = next
				if isLast && !cmp.Equal(partsFor(object, Inputs{Running: now}).service.Spec.Ports, next) {
					t.Errorf("%v to %v, step %d: another step follows, and no port has an interim name", before, after, step)
				}
			}
			for _, port := range declaredPorts(&object.Spec, now) {
				if !slices.ContainsFunc(now.Service, func(p corev1.ServicePort) bool { return p.Name == port.Name && p.Port == port.Number }) {
					t.Errorf("%v to %v: in the end there is no %s %d", before, after, port.Name, port.Number)
				}
			}
		}
	}
}
