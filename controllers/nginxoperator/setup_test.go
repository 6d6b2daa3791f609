package nginxoperator

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/metadata"
)

// A pass is made for a change of what is declared, whether it counts as a generation or not, and for a deletion; not for
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
			o.Annotations = map[string]string{metadata.AnnotationV1alpha2Unreadable: "{"}
		}, true},
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
