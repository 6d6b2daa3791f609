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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
		endpoints[name] = endpointsOf(namespace, name)
		create(t, endpoints[name])
	}
	for _, name := range names {
		update(t, newInstance(namespace, name), func(o *v1alpha2.NginxOperator) { o.Spec.Ports[0].Name = "web" })
	}
	for _, name := range names {
		waitFor(t, func() error { return portOf(t.Context(), namespace, name, "web") })
	}
	must(t, suite.operator.KillLeader(suite.admin))
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
		waitForNoBridge(t, namespace, name)
	}
	must(t, suite.admin.Delete(t.Context(), readStored(t, namespace, "unreadable")))
}

// TestBridgeFollowsItsPods verifies that the operator's EndpointSlices of a renamed port have the
// current state of the Pods. A Pod that drains gets no connections through them, and a Pod that
// becomes ready does. The EndpointSlice controller, which the test plays, is late.
func TestBridgeFollowsItsPods(t *testing.T) {
	t.Parallel()
	namespace, object, _ := newWeb(t, func(s *v1alpha2.NginxOperatorSpec) { s.Ports = []v1alpha2.Port{{Name: "http", Port: 8080}} })
	endpoints := endpointsOf(namespace, "web")
	before, after := newRevision(t, namespace, "web-a"), newRevision(t, namespace, "web-b")
	setReady := func(pod *corev1.Pod) {
		t.Helper()
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		must(t, suite.admin.Status().Update(t.Context(), pod))
	}
	setReady(before.pod)
	endpoints.Endpoints = nil
	for i, pod := range []*corev1.Pod{before.pod, after.pod} {
		endpoints.Endpoints = append(endpoints.Endpoints, discoveryv1.Endpoint{
			Addresses: []string{fmt.Sprintf("192.0.2.%d", 7+i)}, Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(i == 0)},
			TargetRef: &corev1.ObjectReference{Kind: "Pod", Namespace: namespace, Name: pod.Name, UID: pod.UID},
		})
	}
	create(t, endpoints)
	update(t, object, func(o *v1alpha2.NginxOperator) { o.Spec.Ports[0].Name = "web" })
	// waitForBridge waits until the bridge has the given Pods, each with a word for its state.
	waitForBridge := func(want map[string]string) {
		t.Helper()
		waitFor(t, func() error {
			slice, got := &discoveryv1.EndpointSlice{}, map[string]string{}
			if err := suite.admin.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: endpoints.Name + "-renamed"}, slice); err != nil {
				return err
			}
			for _, endpoint := range slice.Endpoints {
				state := "not ready"
				switch is := endpoint.Conditions; {
				case ptr.Deref(is.Ready, false):
					state = "ready"
				case ptr.Deref(is.Terminating, false) && ptr.Deref(is.Serving, false):
					state = "drains"
				}
				got[endpoint.TargetRef.Name] = state
			}
			if !maps.Equal(want, got) {
				return fmt.Errorf("the bridge has the Pods %v, want %v", got, want)
			}
			return nil
		})
	}

	waitForBridge(map[string]string{"web-a-1": "ready", "web-b-1": "not ready"})
	setReady(after.pod)
	waitForBridge(map[string]string{"web-a-1": "ready", "web-b-1": "ready"})
	before.scaleDown(t)
	waitForBridge(map[string]string{"web-a-1": "drains", "web-b-1": "ready"})
	before.drained(t)
	waitForBridge(map[string]string{"web-b-1": "ready"})
	update(t, endpoints, func(e *discoveryv1.EndpointSlice) { e.Ports[0].Name = ptr.To("web") })
	waitForNoBridge(t, namespace, "web")
}

// endpointsOf returns the EndpointSlice that the EndpointSlice controller would create for a
// Service with the port http and one Pod.
func endpointsOf(namespace, service string) *discoveryv1.EndpointSlice {
	out := &discoveryv1.EndpointSlice{
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{"192.0.2.7"}, Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(true)}}},
		Ports:       []discoveryv1.EndpointPort{{Name: ptr.To("http"), Port: ptr.To[int32](8080), Protocol: ptr.To(corev1.ProtocolTCP)}},
	}
	out.Namespace, out.Name = namespace, service+"-abcde"
	out.Labels = map[string]string{discoveryv1.LabelServiceName: service, discoveryv1.LabelManagedBy: "endpointslice-controller.k8s.io"}
	return out
}

// bridgeOf returns an error if the operator has no EndpointSlice for a Service.
func bridgeOf(ctx context.Context, namespace, service string) error {
	slice := &discoveryv1.EndpointSlice{}
	if err := suite.admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: service + "-abcde-renamed"}, slice); err != nil {
		return err
	}
	if metav1.GetControllerOf(slice) == nil {
		return fmt.Errorf("EndpointSlice %s belongs to nobody", slice.Name)
	}
	return nil
}

// waitForNoBridge waits until the operator has deleted its EndpointSlice for a Service.
func waitForNoBridge(t *testing.T, namespace, service string) {
	t.Helper()
	waitFor(t, func() error {
		if err := bridgeOf(t.Context(), namespace, service); client.IgnoreNotFound(err) != nil || err == nil {
			return errors.Join(fmt.Errorf("%s: the bridge stays", service), err)
		}
		return nil
	})
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
