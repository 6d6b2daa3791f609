package integration

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
)

// TestKilledWhileItRenames verifies that the next leader deletes the EndpointSlices that a killed
// operator leaves behind while it renames ports. The leader deletes them after the EndpointSlice
// controller has published the endpoints under the port name of the Service, no matter how the
// objects changed in the meantime.
func TestKilledWhileItRenames(t *testing.T) {
	namespace := newNamespace(t)
	meanwhile := map[string]func(*v1alpha2.NginxOperator){
		"as-it-was":          func(*v1alpha2.NginxOperator) {},
		"paused":             func(o *v1alpha2.NginxOperator) { o.Spec.Paused = true },
		"blocked":            func(o *v1alpha2.NginxOperator) { references["content"].spec(&o.Spec) },
		"blocked-and-paused": func(o *v1alpha2.NginxOperator) { o.Spec.Paused = true; references["content"].spec(&o.Spec) },
		"taken-back":         func(o *v1alpha2.NginxOperator) { o.Spec.Ports[0].Name = "http" },
		"unreadable":         nil,
	}
	names := slices.Sorted(maps.Keys(meanwhile))
	endpoints := map[string]*discoveryv1.EndpointSlice{}
	for _, name := range names {
		object := newInstance(namespace, name)
		object.Spec.Ports = []v1alpha2.Port{{Name: "http", Port: 8080}}
		create(t, object)
		waitForChildren(t, namespace, name)
		endpoints[name] = endpointsOf(namespace, name, "http")
		create(t, endpoints[name])
	}
	for _, name := range names {
		update(t, newInstance(namespace, name), func(o *v1alpha2.NginxOperator) { o.Spec.Ports[0].Name = "web" })
	}
	for _, name := range names {
		waitFor(t, func() error { return portOf(t.Context(), namespace, name, "web") })
	}
	suite.operator.Kill()
	for _, name := range names {
		if err := bridgeOf(t.Context(), namespace, name); err != nil {
			t.Fatalf("%s: the operator left nothing behind: %v", name, err)
		}
		if change := meanwhile[name]; change != nil {
			update(t, newInstance(namespace, name), change)
		} else {
			storeSpec(t, namespace, name, `{"replicas":4294967297}`)
		}
	}
	startNextOperator(t)
	// The new leader has reconciled each object: the status reports it, or the renaming is undone.
	waitForUnstructuredStatus(t, namespace, "unreadable", "Degraded", v1alpha2.ReasonUnreadable)
	for _, name := range []string{"blocked", "blocked-and-paused"} {
		waitForUnstructuredStatus(t, namespace, name, "Degraded", v1alpha2.ReasonReferenceNotFound)
	}
	for _, name := range names {
		update(t, endpoints[name], func(e *discoveryv1.EndpointSlice) { e.Ports[0].Name = ptr.To("web") })
	}
	waitFor(t, func() error { return portOf(t.Context(), namespace, "taken-back", "http") })
	update(t, endpoints["taken-back"], func(e *discoveryv1.EndpointSlice) { e.Ports[0].Name = ptr.To("http") })
	for _, name := range names {
		waitFor(t, func() error {
			if err := bridgeOf(t.Context(), namespace, name); client.IgnoreNotFound(err) != nil || err == nil {
				return errors.Join(fmt.Errorf("%s: the bridge stays", name), err)
			}
			return nil
		})
	}
	must(t, suite.admin.Delete(t.Context(), readStored(t, namespace, "unreadable")))
}

// endpointsOf returns the EndpointSlice that the EndpointSlice controller would create for a
// Service with one Pod.
func endpointsOf(namespace, service, port string) *discoveryv1.EndpointSlice {
	out := &discoveryv1.EndpointSlice{
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{"192.0.2.7"}, Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(true)}}},
		Ports:       []discoveryv1.EndpointPort{{Name: ptr.To(port), Port: ptr.To[int32](8080), Protocol: ptr.To(corev1.ProtocolTCP)}},
	}
	out.Namespace, out.Name = namespace, service+"-abcde"
	out.Labels = map[string]string{discoveryv1.LabelServiceName: service, discoveryv1.LabelManagedBy: "endpointslice-controller.k8s.io"}
	return out
}

// bridgeOf returns an error if the operator has no EndpointSlice for a Service.
func bridgeOf(ctx context.Context, namespace, service string) error {
	return suite.admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: service + "-abcde-renamed"}, &discoveryv1.EndpointSlice{})
}

// portOf returns an error if the first port of a Service has another name.
func portOf(ctx context.Context, namespace, name, want string) error {
	service := &corev1.Service{}
	if err := suite.admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, service); err != nil {
		return err
	}
	if got := service.Spec.Ports[0].Name; got != want {
		return fmt.Errorf("%s has the port %q, want %q", name, got, want)
	}
	return nil
}
