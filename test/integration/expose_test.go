package integration

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
)

// exposedAs returns a spec.expose with an Ingress for a host, with TLS.
func exposedAs(host string) *v1alpha2.Expose {
	return &v1alpha2.Expose{Ingress: &v1alpha2.Ingress{Hosts: []v1alpha2.IngressHost{{Host: host, TLSSecretName: "web"}}}}
}

// writeAddress writes the Ingress status like an Ingress controller.
func writeAddress(t *testing.T, namespace string, points ...networkingv1.IngressLoadBalancerIngress) {
	t.Helper()
	waitFor(t, func() error {
		ingress := must1(childrenOf(t.Context(), namespace, "web"))(t).ingress
		ingress.Status.LoadBalancer.Ingress = points
		return suite.admin.Status().Update(t.Context(), ingress)
	})
}

func waitForURL(t *testing.T, namespace, want string) {
	t.Helper()
	waitForStatus(t, namespace, "web", func(object *v1alpha2.NginxOperator) error {
		if object.Status.URL != want {
			return fmt.Errorf("url %s, want %s", object.Status.URL, want)
		}
		return nil
	})
}

// TestIngress verifies that the status lists the Ingress, and its host after a controller has
// written an address. The operator does not correct the controller's changes. Without spec.expose,
// the operator deletes the Ingress.
func TestIngress(t *testing.T) {
	t.Parallel()
	namespace, object, before := newReadyWeb(t, func(s *v1alpha2.NginxOperatorSpec) { s.Expose = exposedAs("shop.example.com") })
	inside := fmt.Sprintf("http://web.%s.svc:8080", namespace)
	waitForURL(t, namespace, inside)
	isIngress := func(related v1alpha2.RelatedObject) bool {
		return related == v1alpha2.RelatedObject{APIVersion: "networking.k8s.io/v1", Kind: "Ingress", Name: "web"}
	}
	if status := must1(waitForStatusOnce(t.Context(), namespace, "web"))(t).Status; !slices.ContainsFunc(status.RelatedObjects, isIngress) {
		t.Errorf("related objects %v", status.RelatedObjects)
	}

	audited := len(audit(t))
	update(t, before.ingress, func(o *networkingv1.Ingress) {
		o.Annotations["controller.example.com/state"], o.Finalizers = "synced", []string{"controller.example.com/cleanup"}
	})
	writeAddress(t, namespace, networkingv1.IngressLoadBalancerIngress{Hostname: "lb.example.com"})
	waitForURL(t, namespace, "https://shop.example.com")
	waitForMarker(t, namespace)
	if n := withoutEvents(writesOf(t, audited, namespace)); !cmp.Equal(n, map[string]int{"nginxoperators/status": 1}) {
		t.Errorf("what the controller wrote costs %v", n)
	}
	if got := must1(childrenOf(t.Context(), namespace, "web"))(t).ingress; got.Annotations["controller.example.com/state"] != "synced" {
		t.Error("the annotation of the controller is gone")
	}
	writeAddress(t, namespace)
	waitForURL(t, namespace, inside)

	// A pause blocks a deletion like any other change. The deletion then waits for the controller's
	// finalizer.
	update(t, object, func(o *v1alpha2.NginxOperator) { o.Spec.Paused, o.Spec.Expose = true, nil })
	waitForCondition(t, namespace, "web", v1alpha2.ConditionReady, metav1.ConditionFalse, v1alpha2.ReasonPaused)
	paused := must1(waitForStatusOnce(t.Context(), namespace, "web"))(t)
	want := []v1alpha2.Blocker{{Reason: v1alpha2.ReasonPaused, Message: `spec.paused blocks: the deletion of Ingress "web"`}}
	if diff := cmp.Diff(want, paused.Status.BlockedBy); diff != "" {
		t.Errorf("blockedBy (-want +got):\n%s", diff)
	}
	update(t, object, func(o *v1alpha2.NginxOperator) { o.Spec.Paused = false })
	waitFor(t, func() error {
		if got := must1(childrenOf(t.Context(), namespace, "web"))(t).ingress; got != nil && got.DeletionTimestamp.IsZero() {
			return errors.New("the Ingress is there")
		}
		return nil
	})
	update(t, before.ingress, func(o *networkingv1.Ingress) { o.Finalizers = nil })
	rollOutUntilReady(t, namespace)
	requireSamePods(t, before, waitForChildren(t, namespace, "web"))
}

// exposures are the two ways to expose an instance.
var exposures = map[string]struct {
	as func(host string) *v1alpha2.Expose
	// live returns the child if it exists. port returns the Service port that it references.
	live func(children) (child client.Object, exists bool)
	port func(children) int32
	// resource is the child's resource in the audit log.
	resource string
}{
	"Ingress": {
		as: exposedAs, resource: "ingresses/",
		live: func(c children) (client.Object, bool) { return c.ingress, c.ingress != nil },
		port: func(c children) int32 { return c.ingress.Spec.Rules[0].HTTP.Paths[0].Backend.Service.Port.Number },
	},
	"HTTPRoute": {
		as: routed, resource: "httproutes/",
		live: func(c children) (client.Object, bool) { return c.route, c.route != nil },
		port: func(c children) int32 { return *c.route.Spec.Rules[0].BackendRefs[0].Port },
	},
}

// TestExposureWhileBlocked verifies that the operator restores the last applied Ingress or
// HTTPRoute while changes are blocked.
func TestExposureWhileBlocked(t *testing.T) {
	t.Parallel()
	for kind, exposure := range exposures {
		t.Run(kind, func(t *testing.T) {
			namespace, object, before := newReadyWeb(t, func(s *v1alpha2.NginxOperatorSpec) { s.Expose = exposure.as("shop.example.com") })
			update(t, object, func(o *v1alpha2.NginxOperator) {
				o.Spec.Expose = exposure.as("other.example.com")
				o.Spec.Content = &v1alpha2.Content{ConfigMapRef: v1alpha2.ConfigMapReference{Name: "missing"}}
			})
			child, _ := exposure.live(before)
			deleteWhileBlocked(t, namespace, child, exposure.live, func(child client.Object) any {
				return must1(runtime.DefaultUnstructuredConverter.ToUnstructured(child))(t)["spec"]
			})
		})
	}
}

// TestExposureFollowsReadyPods verifies that the Ingress or HTTPRoute moves to the new first port
// only after a Pod is ready on it, and the EndpointSlice controller has its endpoints. Another port
// name does not change it.
func TestExposureFollowsReadyPods(t *testing.T) {
	t.Parallel()
	for kind, exposure := range exposures {
		t.Run(kind, func(t *testing.T) {
			namespace, object, _ := newWeb(t, func(s *v1alpha2.NginxOperatorSpec) { s.Expose = exposure.as("shop.example.com") })
			ready := func(pod *corev1.Pod) {
				pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
				must(t, suite.admin.Status().Update(t.Context(), pod))
				waitUntilSeen(t, pod)
			}
			moves := func(name string) {
				t.Helper()
				update(t, object, func(o *v1alpha2.NginxOperator) { o.Spec.Ports = []v1alpha2.Port{{Name: name, Port: 9090}} })
				waitForShape(t, namespace, shape{
					map[string]string{name: "9090 web", "http": "8080 http"},
					[]string{"8080", "9090", "18080"},
					map[string]int32{"web": 9090, "health": 18080},
				})
			}
			ready(newRevision(t, namespace, "web-a").pod)
			moves("web")
			waitForMarker(t, namespace)
			if got := exposure.port(must1(childrenOf(t.Context(), namespace, "web"))(t)); got != 8080 {
				t.Errorf("port %d, where no Pod is ready", got)
			}
			ready(newRevision(t, namespace, "web-b").pod)
			endpoints := endpointsOf(namespace, "web")
			endpoints.Ports[0].Name = ptr.To("web")
			create(t, endpoints)
			waitForWeb(t, namespace, func(now children) error {
				if got := exposure.port(now); got != 9090 {
					return fmt.Errorf("port %d, want 9090", got)
				}
				return nil
			})
			must(t, suite.admin.Delete(t.Context(), endpoints))
			audited := len(audit(t))
			moves("renamed")
			if n := writesOf(t, audited, namespace)[exposure.resource]; n != 0 {
				t.Errorf("another name costs %d writes", n)
			}
		})
	}
}
