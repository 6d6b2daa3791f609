package endpointslice

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/cached"
	"github.com/example/nginx-operator/internal/fixture"
	"github.com/example/nginx-operator/internal/live"
	"github.com/example/nginx-operator/internal/operand"
	"github.com/example/nginx-operator/internal/scheme"
	"github.com/example/nginx-operator/pkg/apply"
)

// sliceWith returns an EndpointSlice with one endpoint and the ports: pairs of a name and a number.
func sliceWith(pairs ...any) discoveryv1.EndpointSlice {
	out := discoveryv1.EndpointSlice{AddressType: discoveryv1.AddressTypeIPv4}
	out.Endpoints = []discoveryv1.Endpoint{{Addresses: []string{"192.0.2.7"}}}
	out.Namespace, out.Name = "shop", "web-1"
	for pair := range slices.Chunk(pairs, 2) {
		number := int32(pair[1].(int)) // #nosec G115 G602 -- a port, and names and numbers come in pairs
		out.Ports = append(out.Ports, discoveryv1.EndpointPort{Name: ptr.To(pair[0].(string)), Port: &number})
	}
	return out
}

// managedBy returns an EndpointSlice of the Service of fixture.NewObject.
func managedBy(manager string, slice discoveryv1.EndpointSlice) *discoveryv1.EndpointSlice {
	slice.Labels = map[string]string{discoveryv1.LabelServiceName: "web", discoveryv1.LabelManagedBy: manager}
	return &slice
}

// ownedBy returns the owner reference of a child.
func ownedBy(object *v1alpha2.NginxOperator) []metav1.OwnerReference {
	return []metav1.OwnerReference{*metav1.NewControllerRef(object, v1alpha2.GroupVersion.WithKind("NginxOperator"))}
}

// newBridges returns the writer of bridges of an object whose live state is in a fake API server.
func newBridges(
	t *testing.T, object *v1alpha2.NginxOperator, faults interceptor.Funcs, stored ...client.Object,
) Bridges {
	t.Helper()
	builder := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(stored...).WithInterceptorFuncs(faults)
	for _, kind := range []client.Object{&corev1.Pod{}, &corev1.ConfigMap{}} {
		builder = builder.WithIndex(kind, cached.InstanceIndex, func(client.Object) []string { return nil })
	}
	api := builder.Build()
	state, err := live.Read(t.Context(), api, object, nil)
	if err != nil {
		t.Fatal(err)
	}
	return Bridges{Live: state, Applier: &apply.Applier{Client: api, Reader: api, Wrote: func(string, apply.Verb) {}}}
}

// portsFor returns the ports of the Service of an object for the Pods that run.
func portsFor(object *v1alpha2.NginxOperator, now operand.Running) []corev1.ServicePort {
	children := operand.Desired(object, operand.Inputs{Running: now})
	return operand.Compose(children, children, now).Ports
}

// TestBridge verifies that a bridge has all ports of Pods with a renamed port. It is deleted once
// the controller's EndpointSlices have exactly the names of the Service.
func TestBridge(t *testing.T) {
	object := fixture.NewObject(fixture.Ports("web", 8080, "admin", 9000))
	before := operand.Running{
		Containers: []operand.ContainerPort{{Name: "http", Number: 8080, Listens: 8080}, {Name: "admin", Number: 9000, Listens: 9000}},
		Service:    []corev1.ServicePort{{Name: "http", Port: 8080}, {Name: "admin", Port: 9000}},
	}
	names, renamed := newNames(before.Service, portsFor(object, before))
	if diff := cmp.Diff(map[int32]string{8080: "web", 9000: "admin"}, names); diff != "" || !renamed {
		t.Fatalf("names, one of them new: %t (-want +got):\n%s", renamed, diff)
	}
	same := fixture.NewObject(fixture.Ports("http", 8080, "admin", 9000))
	if _, renamed := newNames(before.Service, portsFor(same, before)); renamed {
		t.Error("what has its name is renamed")
	}
	source := sliceWith("http", 8080, "admin", 9000)
	bridge := bridgeOf(&source, before.Service, names)
	both := map[string]sets.Set[int32]{"web": sets.New[int32](8080), "admin": sets.New[int32](9000)}
	if bridge == nil || bridge.Name != "web-1-renamed" || len(bridge.Endpoints) != 1 ||
		!cmp.Equal(portsOf([]discoveryv1.EndpointSlice{*bridge}), both) {
		t.Fatalf("bridge %+v", bridge)
	}
	if none := sliceWith("admin", 9000); bridgeOf(&none, before.Service, names) != nil {
		t.Error("there is a bridge for what is not renamed")
	}
	bridges := []discoveryv1.EndpointSlice{*bridge}
	if !carries(bridges, names, before.Containers) || carries(bridges, map[int32]string{8080: "other", 9000: "admin"}, before.Containers) ||
		carries(bridges, map[int32]string{8080: "web", 9000: "other"}, before.Containers) ||
		carries(bridges, map[int32]string{8080: "admin", 9000: "web"}, before.Containers) {
		t.Error("a bridge is taken for another")
	}
	after := operand.Running{Service: []corev1.ServicePort{{Name: "web", Port: 8080}, {Name: "admin", Port: 9000}}}
	done := sliceWith("web", 8080, "admin", 9000)
	for why, controllers := range map[string][]discoveryv1.EndpointSlice{
		"before anybody took over": {source}, "between two EndpointSlices": {done, source}, "without endpoints": nil,
	} {
		if takenOver(bridges, controllers, after.Service) {
			t.Errorf("the bridge goes %s", why)
		}
	}
	if !takenOver(bridges, []discoveryv1.EndpointSlice{done}, after.Service) ||
		!takenOver(bridges, []discoveryv1.EndpointSlice{source}, before.Service) {
		t.Error("the bridge stays for ever")
	}
}

// TestLacks verifies that a bridge lacks a renamed port only if Pods serve the port.
func TestLacks(t *testing.T) {
	live := []corev1.ServicePort{{Name: "http", Port: 8080}, {Name: "p-9000", Port: 9000}}
	names := map[int32]string{8080: "http", 9000: "admin"}
	without := []discoveryv1.EndpointSlice{sliceWith("http", 8080)}
	pods := []discoveryv1.EndpointSlice{sliceWith("http", 8080), sliceWith("p-9000", 9000)}
	if !lacks(without, pods, live, names) {
		t.Error("the bridge of the step before is taken for that of this one")
	}
	if lacks([]discoveryv1.EndpointSlice{sliceWith("http", 8080, "admin", 9000)}, pods, live, names) {
		t.Error("a bridge lacks a port that it has")
	}
	pods[1].Endpoints = nil
	if lacks(without, pods, live, names) || lacks(without, pods[:1], live, names) {
		t.Error("a port without endpoints is waited for")
	}
}
