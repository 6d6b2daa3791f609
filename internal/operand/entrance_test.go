package operand

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/fixture"
)

// from returns a change to a NetworkPolicy that admits one peer.
func from(name string) func(*v1alpha2.NginxOperatorSpec) {
	peer := networkingv1.NetworkPolicyPeer{PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}}}
	return func(s *v1alpha2.NginxOperatorSpec) {
		s.NetworkPolicy = &v1alpha2.NetworkPolicy{From: []networkingv1.NetworkPolicyPeer{peer}}
	}
}

// TestEntranceWhilePodsChange verifies the ports of the Service, the NetworkPolicy, and the Ingress
// while the Pods are of a later declaration than the entrance.
func TestEntranceWhilePodsChange(t *testing.T) {
	ingress := fixture.Exposed(v1alpha2.IngressHost{Host: "web.example.com"})
	onNode := func(port, nodePort int32) func(*v1alpha2.NginxOperatorSpec) {
		return func(s *v1alpha2.NginxOperatorSpec) {
			s.Ports = []v1alpha2.Port{{Name: "http", Port: port, NodePort: ptr.To(nodePort)}}
		}
	}
	type spec = []func(*v1alpha2.NginxOperatorSpec)
	for name, test := range map[string]struct {
		entrance, pods spec
		// runs are the numbers that Pods serve, and ready those that ready Pods serve.
		runs, ready []int32
		unreached   bool
		service     []string
		policy      []string
		backend     int32
	}{
		"no new Pod is ready": {
			entrance: spec{fixture.Ports("http", 8080)}, pods: spec{fixture.Ports("http", 9000), from("b")},
			runs: []int32{8080, 9000}, ready: []int32{8080},
			service: []string{"http 8080 0"}, policy: []string{"8080 18080 of all"}, backend: 8080,
		},
		"a new Pod is ready": {
			entrance: spec{fixture.Ports("http", 8080), from("a")}, pods: spec{fixture.Ports("web", 9000), from("b")},
			runs: []int32{8080, 9000}, ready: []int32{8080, 9000},
			service: []string{"http 8080 0", "web 9000 0"}, policy: []string{"8080 of a", "9000 of b", "18080 of all"}, backend: 9000,
		},
		"its number has no endpoints": {
			entrance: spec{fixture.Ports("http", 8080)}, pods: spec{fixture.Ports("web", 9000)},
			runs: []int32{8080, 9000}, ready: []int32{8080, 9000}, unreached: true,
			service: []string{"http 8080 0", "web 9000 0"}, policy: []string{"8080 9000 18080 of all"}, backend: 8080,
		},
		"a name is taken": {
			entrance: spec{fixture.Ports("http", 8080)}, pods: spec{fixture.Ports("http", 9000)},
			runs: []int32{8080, 9000}, ready: []int32{9000},
			service: []string{"http 8080 0", "p-9000 9000 0"}, policy: []string{"8080 9000 18080 of all"}, backend: 9000,
		},
		"a number of both": {
			entrance: spec{fixture.Ports("http", 8080), from("a")}, pods: spec{fixture.Ports("web", 8080, "more", 9000), from("b")},
			runs: []int32{8080, 9000}, ready: []int32{8080, 9000},
			service: []string{"http 8080 0", "more 9000 0"}, policy: []string{"8080 of a", "9000 of b", "18080 of all"}, backend: 8080,
		},
		"the old Pods are gone": {
			entrance: spec{fixture.Ports("http", 8080)}, pods: spec{fixture.Ports("web", 9000)},
			runs: []int32{9000}, ready: []int32{9000},
			service: []string{"web 9000 0"}, policy: []string{"9000 18080 of all"}, backend: 9000,
		},
		"a node port moves": {
			entrance: spec{onNode(8080, 30080)}, pods: spec{onNode(9000, 30080)},
			runs: []int32{8080, 9000}, ready: []int32{8080, 9000},
			service: []string{"http 8080 30080", "p-9000 9000 0"}, policy: []string{"8080 9000 18080 of all"}, backend: 9000,
		},
		"a node port has moved": {
			entrance: spec{onNode(8080, 30080)}, pods: spec{onNode(9000, 30080)},
			runs: []int32{9000}, ready: []int32{9000},
			service: []string{"http 9000 30080"}, policy: []string{"9000 18080 of all"}, backend: 9000,
		},
	} {
		t.Run(name, func(t *testing.T) {
			object := fixture.NewObject(append(test.entrance, ingress)...)
			now := Running{ready: sets.New(test.ready...), exposed: 8080, Service: []corev1.ServicePort{{Name: "http", Port: 8080}}}
			for _, number := range test.runs {
				now.Containers = append(now.Containers, ContainerPort{fmt.Sprint("n", number), number, number})
			}
			if test.unreached {
				now = now.WithoutEndpoints(9000)
			}

			in := Inputs{Image: fixture.Image, Running: now}
			composed := Compose(Desired(fixture.NewObject(append(test.pods, ingress)...), in), Desired(object, in), now)
			got := partsOf(composed.Children)
			var service, policy []string
			for _, port := range got.service.Spec.Ports {
				service = append(service, fmt.Sprint(port.Name, " ", port.Port, " ", port.NodePort))
			}
			for _, rule := range got.policy.Spec.Ingress {
				text := ""
				for _, port := range rule.Ports {
					text += fmt.Sprint(port.Port.IntVal, " ")
				}
				peer := "all"
				if len(rule.From) > 0 {
					peer = rule.From[0].PodSelector.MatchLabels["app"]
				}
				policy = append(policy, text+"of "+peer)
			}
			backend := got.ingress.Spec.Rules[0].HTTP.Paths[0].Backend.Service.Port.Number
			for of, diff := range map[string]string{
				"Service": cmp.Diff(test.service, service), "NetworkPolicy": cmp.Diff(test.policy, policy), "Ingress": cmp.Diff(test.backend, backend),
			} {
				if diff != "" {
					t.Errorf("%s (-want +got):\n%s", of, diff)
				}
			}
			if composed.HeldRoute != test.unreached {
				t.Errorf("the route is held: %t", !test.unreached)
			}
		})
	}
}

// TestWithEntrance verifies that the children of two declarations are combined in the order in
// which they depend on each other.
func TestWithEntrance(t *testing.T) {
	in := Inputs{Image: fixture.Image}
	pods := fixture.NewObject(func(s *v1alpha2.NginxOperatorSpec) {
		s.NetworkPolicy = &v1alpha2.NetworkPolicy{Mode: "None"}
		s.Replicas = ptr.To[int32](2)
	})
	entrance := fixture.NewObject(func(s *v1alpha2.NginxOperatorSpec) {
		s.Service = &v1alpha2.Service{Annotations: map[string]string{"of": "entrance"}}
	})
	children := WithEntrance(Desired(pods, in), Desired(entrance, in))
	var kinds []string
	for _, child := range children {
		kinds = append(kinds, KindOf(child))
		if KindOf(child) == "Service" && child.GetAnnotations()["of"] != "entrance" {
			t.Errorf("Service %+v", child)
		}
	}
	if want := []string{"ConfigMap", "Service", "NetworkPolicy", "Deployment", "PodDisruptionBudget"}; !slices.Equal(kinds, want) {
		t.Errorf("%v, want %v", kinds, want)
	}
}

// TestRolloutThatMovesTheRoute verifies that old Pods serve until the Ingress has moved, and that
// only an Ingress or HTTPRoute with another number moves.
func TestRolloutThatMovesTheRoute(t *testing.T) {
	ingress := fixture.Exposed(v1alpha2.IngressHost{Host: "a"})
	render := func(change ...func(*v1alpha2.NginxOperatorSpec)) []client.Object {
		return Desired(fixture.NewObject(change...), Inputs{Image: fixture.Image})
	}
	before, after := render(fixture.Ports("http", 8080), ingress), render(fixture.Ports("http", 9000), ingress)
	plain := render(fixture.Ports("http", 8080))
	for name, test := range map[string]struct {
		entrance []client.Object
		want     int32
	}{"another number": {before, routeSettleSeconds}, "the same number": {after, 0}, "no route": {plain, 0}} {
		if got := partsOf(Compose(after, test.entrance, Running{}).Children).deployment.Spec.MinReadySeconds; got != test.want {
			t.Errorf("%s: minReadySeconds %d, want %d", name, got, test.want)
		}
	}
}

// TestPodsWithoutEntrance verifies that Pods of which only the Deployment is known change nothing
// of an entrance that they serve.
func TestPodsWithoutEntrance(t *testing.T) {
	in := Inputs{Image: fixture.Image}
	ingress := fixture.Exposed(v1alpha2.IngressHost{Host: "web.example.com"})
	children := Desired(fixture.NewObject(fixture.Ports("web", 8080), from("web"), ingress), in)
	alone := []client.Object{partsOf(children).deployment}
	now := Running{Containers: []ContainerPort{{"web", 8080, 8080}}, ready: sets.New[int32](8080), exposed: 8080}
	composed := partsOf(Compose(alone, children, now).Children)
	want := partsOf(Compose(children, children, now).Children)
	if diff := cmp.Diff(want, composed, cmp.AllowUnexported(parts{})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
