package nginxoperator

import (
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/cached"
	"github.com/example/nginx-operator/internal/fixture"
	"github.com/example/nginx-operator/internal/wellknown"
	"github.com/example/nginx-operator/pkg/manager"
)

// TestSpecChanged verifies that a changed spec and a deletion start a reconcile, even without a new
// generation. Other writes to the object do not.
func TestSpecChanged(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*v1alpha2.NginxOperator)
		want   bool
	}{
		"nothing":    {func(*v1alpha2.NginxOperator) {}, false},
		"the status": {func(o *v1alpha2.NginxOperator) { o.Status.Replicas = 1; o.ResourceVersion = "2" }, false},
		"metadata":   {func(o *v1alpha2.NginxOperator) { o.Labels = map[string]string{"a": "b"} }, false},
		"a field":    {func(o *v1alpha2.NginxOperator) { o.Generation++; o.Spec.Replicas = ptr.To[int32](5) }, true},
		"a field that is stored in an annotation": {func(o *v1alpha2.NginxOperator) { o.Spec.DrainSeconds = ptr.To[int32](60) }, true},
		"the mark of a spec that could not be read": {func(o *v1alpha2.NginxOperator) {
			o.Annotations = map[string]string{wellknown.AnnotationV1alpha2Unreadable: "{"}
		}, true},
		"that it is a canary": {func(o *v1alpha2.NginxOperator) { o.Labels = map[string]string{wellknown.LabelCanary: "true"} }, true},
		"its deletion": {func(o *v1alpha2.NginxOperator) {
			o.Generation++
			o.DeletionTimestamp = ptr.To(metav1.NewTime(time.Now()))
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			before := fixture.NewObject()
			after := before.DeepCopy()
			test.change(after)
			if got := specChanged().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}); got != test.want {
				t.Errorf("passed %t, want %t", got, test.want)
			}
		})
	}
	if !specChanged().Create(event.CreateEvent{Object: fixture.NewObject()}) {
		t.Error("a new object is not passed")
	}
}

// TestNewGenerationFirst verifies that a new leader reconciles an object first that was created or
// changed while there was none, in the queue of the controller and with the handlers of its
// watches. newGenerationFirst requests no other object.
func TestNewGenerationFirst(t *testing.T) {
	for name, test := range map[string]struct {
		observed int64
		initial  bool
		first    string
		requests int
	}{
		"created meanwhile":      {0, true, "last", 1},
		"changed meanwhile":      {2, true, "last", 1},
		"as it was":              {3, true, "first", 0},
		"created under a leader": {0, false, "last", 0},
	} {
		t.Run(name, func(t *testing.T) {
			options := manager.ControllerOptions()
			queue, alone := options.NewQueue("leader", options.RateLimiter), options.NewQueue("alone", options.RateLimiter)
			defer queue.ShutDown()
			defer alone.ShutDown()
			list := func(name string, observed int64, initial bool) {
				object := fixture.NewObject()
				object.Name, object.Status.ObservedGeneration = name, observed
				created := event.CreateEvent{Object: object, IsInInitialList: initial}
				(&handler.EnqueueRequestForObject{}).Create(t.Context(), created, queue)
				handler.Funcs{CreateFunc: newGenerationFirst}.Create(t.Context(), created, queue)
				handler.Funcs{CreateFunc: newGenerationFirst}.Create(t.Context(), created, alone)
			}
			list("first", 3, true)
			list("last", test.observed, test.initial)
			if got, _ := queue.Get(); got.Name != test.first || alone.Len() != test.requests {
				t.Errorf("%s comes first, want %s; %d requests, want %d", got.Name, test.first, alone.Len(), test.requests)
			}
		})
	}
}

// TestChildChanged verifies that a changed child, a status update of another controller, and a
// resync start a reconcile. The operator's own writes do not.
func TestChildChanged(t *testing.T) {
	for name, test := range map[string]struct {
		change                  func(*appsv1.Deployment)
		differs, resync, passes bool
		// reported is true if another controller has reported on the child, so that its creation
		// passes as well.
		reported bool
	}{
		"the operator's own write":       {change: func(d *appsv1.Deployment) { d.Generation++ }},
		"what somebody else has changed": {change: func(d *appsv1.Deployment) { d.Generation++ }, differs: true, passes: true},
		"the status":                     {change: func(d *appsv1.Deployment) { d.Status.ReadyReplicas = 1 }, passes: true, reported: true},
		"that it was seen": {change: func(d *appsv1.Deployment) {
			d.Generation, d.Spec.Replicas, d.Status.ObservedGeneration = 1, ptr.To[int32](0), 1
		}},
		"all that are in the cache": {change: func(*appsv1.Deployment) {}, resync: true, passes: true},
	} {
		t.Run(name, func(t *testing.T) {
			before := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "1"}}
			after := before.DeepCopy()
			if test.change(after); !test.resync {
				after.ResourceVersion = "2"
			}
			changed := childChanged(func(client.Object) bool { return !test.differs })
			if got := changed.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}); got != test.passes {
				t.Errorf("its update passed %t, want %t", got, test.passes)
			}
			if got := changed.Create(event.CreateEvent{Object: after}); got != (test.differs || test.reported) {
				t.Errorf("its creation passed %t, want %t", got, test.differs)
			}
			if !changed.Delete(event.DeleteEvent{Object: after}) {
				t.Error("its deletion did not pass")
			}
		})
	}
}

// TestTheEndOfPods verifies that the end of a Pod or of a ReplicaSet starts a reconcile, because an
// undeclared port may be removed then.
func TestTheEndOfPods(t *testing.T) {
	running, evicted := &corev1.Pod{}, &corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodFailed}}
	draining := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: ptr.To(metav1.Now())}}
	wanted, unwanted := &appsv1.ReplicaSet{}, &appsv1.ReplicaSet{}
	wanted.Spec.Replicas, unwanted.Spec.Replicas = ptr.To[int32](2), ptr.To[int32](0)
	for name, test := range map[string]struct{ got, want bool }{
		"a Pod is gone":              {podFailureChanged().Delete(event.DeleteEvent{Object: running}), true},
		"a Pod ends":                 {podFailureChanged().Update(event.UpdateEvent{ObjectOld: running, ObjectNew: evicted}), true},
		"a Pod is to end":            {podFailureChanged().Update(event.UpdateEvent{ObjectOld: running, ObjectNew: draining}), true},
		"a Pod drains":               {podFailureChanged().Update(event.UpdateEvent{ObjectOld: draining, ObjectNew: draining}), false},
		"a Pod stays":                {podFailureChanged().Update(event.UpdateEvent{ObjectOld: running, ObjectNew: running}), false},
		"a revision is gone":         {revisionEnds().Delete(event.DeleteEvent{Object: unwanted}), true},
		"a revision wants no Pods":   {revisionEnds().Update(event.UpdateEvent{ObjectOld: wanted, ObjectNew: unwanted}), true},
		"a revision wants Pods":      {revisionEnds().Update(event.UpdateEvent{ObjectOld: unwanted, ObjectNew: wanted}), false},
		"a revision is scaled":       {revisionEnds().Update(event.UpdateEvent{ObjectOld: wanted, ObjectNew: wanted}), false},
		"there is another revision":  {revisionEnds().Create(event.CreateEvent{Object: wanted}), false},
		"there is another Pod to be": {podFailureChanged().Create(event.CreateEvent{Object: running}), false},
	} {
		if test.got != test.want {
			t.Errorf("%s: passed %t", name, test.got)
		}
	}
}

// TestReportChanged verifies that a changed load balancer address, a changed status of an Ingress,
// and the acceptance of an HTTPRoute start a reconcile. The operator's own writes do not.
func TestReportChanged(t *testing.T) {
	with := func(ingress ...corev1.LoadBalancerIngress) *corev1.Service {
		return &corev1.Service{
			Spec:   corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer},
			Status: corev1.ServiceStatus{LoadBalancer: corev1.LoadBalancerStatus{Ingress: ingress}},
		}
	}
	one, other := corev1.LoadBalancerIngress{IP: "192.0.2.1"}, corev1.LoadBalancerIngress{Hostname: "lb.example.com"}
	reached := &networkingv1.Ingress{}
	reached.Status.LoadBalancer.Ingress = []networkingv1.IngressLoadBalancerIngress{{IP: "192.0.2.1"}}
	route := &gatewayv1.HTTPRoute{}
	route.Status.Parents = []gatewayv1.RouteParentStatus{{ParentRef: gatewayv1.ParentReference{Name: "public"}}}
	accepted := route.DeepCopy()
	accepted.Status.Parents[0].Conditions = []metav1.Condition{{Type: "Accepted", Status: metav1.ConditionTrue}}
	for name, test := range map[string]struct {
		before, after client.Object
		want          bool
	}{
		"no address":       {with(), with(), false},
		"same addresses":   {with(one, other), with(one, other), false},
		"a first address":  {with(), with(one), true},
		"a lost address":   {with(one), with(), true},
		"another address":  {with(one), with(other), true},
		"a second address": {with(one), with(one, other), true},
		"same Ingress":     {reached, reached.DeepCopy(), false},
		"an Ingress":       {&networkingv1.Ingress{}, reached.DeepCopy(), true},
		"same HTTPRoute":   {route, route.DeepCopy(), false},
		"an acceptance":    {route, accepted, true},
	} {
		test.after.SetResourceVersion("2")
		changed := childChanged(func(client.Object) bool { return true })
		if got := changed.Update(event.UpdateEvent{ObjectOld: test.before, ObjectNew: test.after}); got != test.want {
			t.Errorf("%s: passed %t", name, got)
		}
	}
}

// TestStatusLater verifies that several changes of a Deployment's status start one reconcile, and
// that nothing else waits.
func TestStatusLater(t *testing.T) {
	object := fixture.NewObject()
	deployment := func(resourceVersion string, generation int64) *appsv1.Deployment {
		out := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{
			Namespace: object.Namespace, Name: object.Name, ResourceVersion: resourceVersion, Generation: generation,
		}}
		out.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(object, v1alpha2.GroupVersion.WithKind("NginxOperator"))}
		return out
	}
	type change struct {
		after time.Duration
		event.UpdateEvent
	}
	for name, test := range map[string]struct {
		changes []change
		want    time.Duration
	}{
		"two of its status": {[]change{
			{0, event.UpdateEvent{ObjectOld: deployment("1", 1), ObjectNew: deployment("2", 1)}},
			{statusDelay / 2, event.UpdateEvent{ObjectOld: deployment("2", 1), ObjectNew: deployment("3", 1)}},
		}, statusDelay},
		"its spec": {[]change{{0, event.UpdateEvent{ObjectOld: deployment("1", 1), ObjectNew: deployment("2", 2)}}}, 0},
		"its status, then its spec": {[]change{
			{0, event.UpdateEvent{ObjectOld: deployment("1", 1), ObjectNew: deployment("2", 1)}},
			{statusDelay / 2, event.UpdateEvent{ObjectOld: deployment("2", 1), ObjectNew: deployment("3", 2)}},
		}, statusDelay / 2},
		"a resync": {[]change{{0, event.UpdateEvent{ObjectOld: deployment("1", 1), ObjectNew: deployment("1", 1)}}}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				options := manager.ControllerOptions()
				queue := options.NewQueue("status", options.RateLimiter)
				defer queue.ShutDown()
				began := time.Now()
				go func() {
					for _, change := range test.changes {
						time.Sleep(change.after)
						statusLater{enqueue(cached.ControllingInstance)}.Update(t.Context(), change.UpdateEvent, queue)
					}
				}()
				if _, _ = queue.Get(); time.Since(began) != test.want {
					t.Errorf("the reconcile starts after %s, want %s", time.Since(began), test.want)
				}
				time.Sleep(10 * statusDelay)
				if got := queue.Len(); got != 0 {
					t.Errorf("%d more requests", got)
				}
			})
		})
	}
}
