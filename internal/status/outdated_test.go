package status

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/fixture"
	"github.com/example/nginx-operator/internal/live"
	"github.com/example/nginx-operator/internal/operand"
)

// TestStatusOfOutdated verifies that the condition exists while the spec has a refused value, and
// stays while the spec cannot be evaluated. It does not affect other conditions.
func TestStatusOfOutdated(t *testing.T) {
	object := fixture.NewObject()
	result := newOutcome(t, object)
	path := operand.SpecPath.Child("monitoring", "podMonitor", "interval")
	result.Outdated = field.ErrorList{field.Invalid(path, "1s", "must be at least 5s")}
	is := func(want bool) {
		t.Helper()
		object.Status = statusOf(object, live.Observed{}, result)
		found := meta.FindStatusCondition(object.Status.Conditions, v1alpha2.ConditionOutdated)
		if (found != nil) != want {
			t.Fatalf("conditions %+v", object.Status.Conditions)
		}
		if want && (found.Status != metav1.ConditionTrue || !strings.Contains(found.Message, "podMonitor.interval: Invalid value: \"1s\"")) {
			t.Errorf("condition %+v", found)
		}
		if !meta.IsStatusConditionFalse(object.Status.Conditions, v1alpha2.ConditionDegraded) || len(object.Status.BlockedBy) > 0 {
			t.Errorf("the object is degraded: %+v", object.Status)
		}
	}
	result.Resolved = true
	is(true)
	result.Outdated, result.Resolved = nil, false
	is(true)
	result.Resolved = true
	is(false)
}
