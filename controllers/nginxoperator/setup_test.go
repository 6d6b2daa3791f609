package nginxoperator

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/wellknown"
)

// A reconcile is made for a change of what is declared, whether it counts as a generation or not, and for a deletion; not for
// what the operator or others write beside it.
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
			before := newObject()
			after := before.DeepCopy()
			test.change(after)
			if got := specChanged().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}); got != test.want {
				t.Errorf("passed %t, want %t", got, test.want)
			}
		})
	}
	if !specChanged().Create(event.CreateEvent{Object: newObject()}) {
		t.Error("a new object is not passed")
	}
}

// A reconcile is made for a child that is not as it was left, for what the Deployment's controller and those who scale report, and
// every ten hours; not for the operator's own writes.
func TestChildChanged(t *testing.T) {
	for name, test := range map[string]struct {
		change                  func(*appsv1.Deployment)
		differs, resync, passes bool
	}{
		"the operator's own write":       {change: func(d *appsv1.Deployment) { d.Generation++ }},
		"what somebody else has changed": {change: func(d *appsv1.Deployment) { d.Generation++ }, differs: true, passes: true},
		"the status":                     {change: func(d *appsv1.Deployment) { d.Status.ReadyReplicas = 1 }, passes: true},
		"who scales": {change: func(d *appsv1.Deployment) {
			d.ManagedFields = []metav1.ManagedFieldsEntry{{
				Subresource: "scale", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:replicas":{}}}`),
			}}
		}, passes: true},
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
			if got := changed.Create(event.CreateEvent{Object: after}); got != test.differs {
				t.Errorf("its creation passed %t, want %t", got, test.differs)
			}
			if !changed.Delete(event.DeleteEvent{Object: after}) {
				t.Error("its deletion did not pass")
			}
		})
	}
}

// A reconcile is made for the end of a Pod and of a revision: with it a port may go that is no longer declared.
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
