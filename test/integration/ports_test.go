package integration

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
)

// revision is a revision of a Deployment with one Pod, as kube-controller-manager creates it.
type revision struct {
	set *appsv1.ReplicaSet
	pod *corev1.Pod
}

// newRevision creates the revision for the Deployment's current Pod template.
func newRevision(t *testing.T, namespace, name string) *revision {
	t.Helper()
	deployment := must1(childrenOf(t.Context(), namespace, "web"))(t).deployment
	set := replicaSet(deployment)
	set.Name, set.Spec.Replicas = name, ptr.To[int32](1)
	create(t, set)
	pod := &corev1.Pod{ObjectMeta: *deployment.Spec.Template.ObjectMeta.DeepCopy(), Spec: *deployment.Spec.Template.Spec.DeepCopy()}
	pod.Namespace, pod.Name, pod.Finalizers = namespace, name+"-1", []string{"example.com/drain"}
	pod.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: "apps/v1", Kind: "ReplicaSet", Name: set.Name, UID: set.UID, Controller: ptr.To(true),
	}}
	create(t, pod)
	t.Cleanup(func() { removeFinalizer(context.Background(), pod) })
	return &revision{set, pod}
}

// waitUntilSeen returns when the operator has seen a Pod. It makes the Pod fail until the object's
// status reports the failure, and then makes the Pod healthy again.
func waitUntilSeen(t *testing.T, pod *corev1.Pod) {
	t.Helper()
	healthy := pod.Status
	pod.Status = waitingPod("ImagePullBackOff", "Back-off pulling image")
	must(t, suite.admin.Status().Update(t.Context(), pod))
	waitForCondition(t, pod.Namespace, "web", v1alpha2.ConditionDegraded, metav1.ConditionTrue, v1alpha2.ReasonImagePullFailed)
	pod.Status = healthy
	must(t, suite.admin.Status().Update(t.Context(), pod))
	waitForCondition(t, pod.Namespace, "web", v1alpha2.ConditionDegraded, metav1.ConditionFalse, v1alpha2.ReasonAsExpected)
}

func removeFinalizer(ctx context.Context, pod *corev1.Pod) {
	_ = suite.admin.Patch(ctx, pod, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`)))
}

// scaleDown deletes the revision's Pod. The Pod keeps serving until drained is called.
func (r *revision) scaleDown(t *testing.T) {
	t.Helper()
	update(t, r.set, func(s *appsv1.ReplicaSet) { s.Spec.Replicas = ptr.To[int32](0) })
	must(t, suite.admin.Delete(t.Context(), r.pod))
}

// drained removes the revision's Pod completely.
func (r *revision) drained(t *testing.T) {
	t.Helper()
	removeFinalizer(t.Context(), r.pod)
	waitFor(t, func() error {
		err := suite.admin.Get(t.Context(), client.ObjectKeyFromObject(r.pod), &corev1.Pod{})
		if client.IgnoreNotFound(err) != nil || err == nil {
			return errors.Join(errors.New("the Pod is still there"), err)
		}
		return nil
	})
}

// shape describes the ports of the Service, of the NetworkPolicy, and of new Pods.
type shape struct {
	service map[string]string
	policy  []string
	pods    map[string]int32
}

func shapeOf(c children) shape {
	out := shape{service: servedBy(c.service), pods: containerPorts(c.deployment)}
	for _, port := range c.policy.Spec.Ingress[0].Ports {
		out.policy = append(out.policy, port.Port.String())
	}
	return out
}

func waitForShape(t *testing.T, namespace string, want shape) {
	t.Helper()
	waitForWeb(t, namespace, func(got children) error {
		if got.service == nil || got.policy == nil || got.deployment == nil {
			return errors.New("children are missing")
		}
		if diff := cmp.Diff(want, shapeOf(got), cmp.AllowUnexported(shape{})); diff != "" {
			return fmt.Errorf("(-want +got):\n%s", diff)
		}
		return nil
	})
}

// TestPortsWhilePodsServe verifies that the Service and the NetworkPolicy match the ports of the
// Pods during a rollout. A port number that stays is reachable throughout. A new number gets a name
// that no Pod uses for another number. A removed number stays until the last Pod that serves it is
// gone.
func TestPortsWhilePodsServe(t *testing.T) {
	t.Parallel()
	list := func(ports ...v1alpha2.Port) func(*v1alpha2.NginxOperator) {
		return func(o *v1alpha2.NginxOperator) { o.Spec.Ports = ports }
	}
	port := func(name string, number int32) v1alpha2.Port { return v1alpha2.Port{Name: name, Port: number} }
	to := func(target int32, of v1alpha2.Port) v1alpha2.Port { of.TargetPort = &target; return of }
	http, admin := port("http", 8080), port("admin", 9000)
	before := shape{
		map[string]string{"http": "8080 http", "admin": "9000 admin"},
		[]string{"8080", "9000", "18080"},
		map[string]int32{"http": 8080, "admin": 9000, "health": 18080},
	}
	for name, test := range map[string]struct {
		change func(*v1alpha2.NginxOperator)
		// during is the shape while Pods of the previous revision exist. after is the shape when
		// they are gone, if it differs.
		during shape
		after  *shape
	}{
		"rename": {
			change: list(port("web", 8080), admin),
			during: shape{map[string]string{"web": "8080 http", "admin": "9000 admin"}, before.policy, before.pods},
		},
		"swap": {
			change: list(port("admin", 8080), port("http", 9000)),
			during: shape{map[string]string{"admin": "8080 http", "http": "9000 admin"}, before.policy, before.pods},
		},
		"renumber": {
			list(port("http", 8081), admin),
			shape{
				map[string]string{"http": "8081 p-8081", "admin": "9000 admin", "p-8080": "8080 http"},
				[]string{"8080", "8081", "9000", "18080"},
				map[string]int32{"p-8081": 8081, "admin": 9000, "health": 18080},
			},
			&shape{
				map[string]string{"http": "8081 p-8081", "admin": "9000 admin"},
				[]string{"8081", "9000", "18080"},
				map[string]int32{"p-8081": 8081, "admin": 9000, "health": 18080},
			},
		},
		"target": {
			list(to(9090, http), admin),
			shape{before.service, []string{"8080", "9000", "9090", "18080"}, map[string]int32{"http": 9090, "admin": 9000, "health": 18080}},
			&shape{before.service, []string{"9000", "9090", "18080"}, map[string]int32{"http": 9090, "admin": 9000, "health": 18080}},
		},
		"targets change places": {
			change: list(to(9000, http), to(8080, admin)),
			during: shape{before.service, before.policy, map[string]int32{"http": 9000, "admin": 8080, "health": 18080}},
		},
		"another number to the same target": {
			list(to(8080, port("http", 80)), admin),
			shape{
				map[string]string{"http": "80 p-80", "admin": "9000 admin", "p-8080": "8080 http"},
				[]string{"8080", "9000", "18080"},
				map[string]int32{"p-80": 8080, "admin": 9000, "health": 18080},
			},
			&shape{
				map[string]string{"http": "80 p-80", "admin": "9000 admin"},
				[]string{"8080", "9000", "18080"},
				map[string]int32{"p-80": 8080, "admin": 9000, "health": 18080},
			},
		},
		"reorder": {
			change: list(admin, http), during: before,
		},
		"add": {
			change: list(http, admin, port("more", 9001)),
			during: shape{
				map[string]string{"http": "8080 http", "admin": "9000 admin", "more": "9001 more"},
				[]string{"8080", "9000", "9001", "18080"},
				map[string]int32{"http": 8080, "admin": 9000, "more": 9001, "health": 18080},
			},
		},
		"remove": {
			list(http),
			shape{before.service, before.policy, map[string]int32{"http": 8080, "health": 18080}},
			&shape{map[string]string{"http": "8080 http"}, []string{"8080", "18080"}, map[string]int32{"http": 8080, "health": 18080}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			namespace, object, first := newWeb(t, func(s *v1alpha2.NginxOperatorSpec) { s.Ports = []v1alpha2.Port{http, admin} })
			template := first.deployment.Spec.Template
			waitForShape(t, namespace, before)
			old := newRevision(t, namespace, "web-a")
			waitUntilSeen(t, old.pod)
			update(t, object, test.change)
			waitForShape(t, namespace, test.during)
			deployment := must1(childrenOf(t.Context(), namespace, "web"))(t).deployment
			diff := cmp.Diff(template, deployment.Spec.Template)
			if rolled := diff != ""; rolled != !cmp.Equal(test.during.pods, before.pods) && name != "reorder" {
				t.Errorf("the change of the Pod template: %q", diff)
			}

			// If the change is undone in the middle, everything is as before.
			update(t, object, list(http, admin))
			waitForShape(t, namespace, before)
			update(t, object, test.change)
			waitForShape(t, namespace, test.during)
			newRevision(t, namespace, "web-b")
			old.scaleDown(t)
			// A draining Pod still serves.
			waitForMarker(t, namespace)
			waitForShape(t, namespace, test.during)
			audited := len(audit(t))
			old.drained(t)
			after := ptr.Deref(test.after, test.during)
			waitForShape(t, namespace, after)
			waitForMarker(t, namespace)
			writes := withoutEvents(writesOf(t, audited, namespace))
			for kind, differs := range map[string]bool{
				"services/":        !cmp.Equal(after.service, test.during.service),
				"networkpolicies/": !cmp.Equal(after.policy, test.during.policy),
			} {
				if (writes[kind] == 1) != differs || writes[kind] > 1 {
					t.Errorf("the end of the old Pods costs %v, written %t: %s", writes, differs, kind)
				}
			}
			if writes["deployments/"] != 0 {
				t.Errorf("the end of the old Pods changes the new ones: %v", writes)
			}
		})
	}
}

// renamed is the shape of an instance without Pods whose only port is named web.
var renamed = shape{map[string]string{"web": "8080 web"}, []string{"8080", "18080"}, map[string]int32{"web": 8080, "health": 18080}}

// TestForeignPodsAddNoPorts verifies that a Pod that has the operator's labels but no owner adds no
// ports to the Service.
func TestForeignPodsAddNoPorts(t *testing.T) {
	t.Parallel()
	namespace, object, first := newWeb(t, nil)
	template := first.deployment.Spec.Template
	foreign := &corev1.Pod{Spec: *template.Spec.DeepCopy()}
	foreign.Namespace, foreign.Name, foreign.Labels = namespace, "foreign", template.Labels
	foreign.Spec.Containers[0].Ports = []corev1.ContainerPort{{Name: "other", ContainerPort: 9999}, {Name: "health", ContainerPort: 9998}}
	create(t, foreign)
	update(t, object, func(o *v1alpha2.NginxOperator) { o.Spec.Ports = []v1alpha2.Port{{Name: "web", Port: 8080}} })
	waitForShape(t, namespace, renamed)
}

// TestRenamedPortKeepsItsEndpoints verifies that a renamed port has endpoints under the new name
// before the Service has this name. The operator deletes its own EndpointSlices after those of the
// EndpointSlice controller have the name. The test plays this controller: it writes one
// EndpointSlice for the Pods of each revision, and swaps the two when it renames the port. In
// between, no EndpointSlice of the controller has the endpoints of the first revision under any
// port name.
func TestRenamedPortKeepsItsEndpoints(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	admin := v1alpha2.Port{Name: "admin", Port: 9000}
	object := createWeb(t, namespace, func(s *v1alpha2.NginxOperatorSpec) { s.Ports = []v1alpha2.Port{{Name: "http", Port: 8080}, admin} })
	service := waitForChildren(t, namespace, "web").service
	first, second := endpointsOf(namespace, "web"), endpointsOf(namespace, "web")
	first.Ports = append(first.Ports, discoveryv1.EndpointPort{Name: &admin.Name, Port: &admin.Port, Protocol: ptr.To(corev1.ProtocolTCP)})
	second.Name, second.Endpoints[0].Addresses = "web-fghij", []string{"192.0.2.8"}
	create(t, first)
	create(t, second)

	update(t, object, func(o *v1alpha2.NginxOperator) { o.Spec.Ports[0].Name = "web" })
	bridge := &discoveryv1.EndpointSlice{}
	waitFor(t, func() error {
		if err := suite.admin.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "web-abcde-renamed"}, bridge); err != nil {
			return err
		}
		return suite.admin.Get(t.Context(), client.ObjectKeyFromObject(service), service)
	})
	if service.Spec.Ports[0].Name != "http" {
		t.Error("the Service has the new name before the nodes can know of the endpoints")
	}
	withNewName := first.DeepCopy()
	withNewName.Ports[0].Name = ptr.To("web")
	if diff := cmp.Diff(withNewName.Ports, bridge.Ports); diff != "" || !cmp.Equal(bridge.Endpoints, first.Endpoints) ||
		bridge.Labels[discoveryv1.LabelServiceName] != "web" {
		t.Errorf("the EndpointSlice is %+v, ports (-want +got):\n%s", bridge, diff)
	}
	waitForShape(t, namespace, shape{
		map[string]string{"web": "8080 web", "admin": "9000 admin"},
		[]string{"8080", "9000", "18080"},
		map[string]int32{"web": 8080, "admin": 9000, "health": 18080},
	})
	update(t, first, func(e *discoveryv1.EndpointSlice) {
		e.Ports, e.Endpoints = withNewName.Ports[:1], second.Endpoints
	})
	update(t, object, func(o *v1alpha2.NginxOperator) { o.Spec.DrainSeconds = ptr.To(v1alpha2.DefaultDrainSeconds + 1) })
	waitFor(t, func() error {
		_, err := waitForStatusOnce(t.Context(), namespace, "web")
		return err
	})
	must(t, suite.admin.Get(t.Context(), client.ObjectKeyFromObject(bridge), bridge))
	update(t, second, func(e *discoveryv1.EndpointSlice) { e.Ports, e.Endpoints = withNewName.Ports, withNewName.Endpoints })
	for _, name := range []string{"web-abcde-renamed", "web-fghij-renamed"} {
		waitFor(t, func() error {
			err := suite.admin.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, bridge)
			if err == nil {
				return errors.New("the EndpointSlice stays")
			}
			return client.IgnoreNotFound(err)
		})
	}
	audited := len(audit(t))
	waitForMarker(t, namespace)
	if n := withoutEvents(writesOf(t, audited, namespace)); len(n) != 0 {
		t.Errorf("writes at the end: %v", n)
	}
}
