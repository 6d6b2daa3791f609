package olm

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestParts verifies that OLM can replace the operator only if all parts allow it. The condition
// does not become True until each part has called Set. It becomes False immediately.
func TestParts(t *testing.T) {
	const yes, no = metav1.ConditionTrue, metav1.ConditionFalse
	condition := &recorded{}
	of := &Upgradeable{condition: condition}
	first, second := of.Part(), of.Part()
	for i, step := range []struct {
		by     *Part
		status metav1.ConditionStatus
		want   metav1.ConditionStatus
		reason string
		writes int
	}{
		{first, yes, "", "", 0},
		{second, no, no, "second", 1},
		{first, yes, no, "second", 1},
		{first, no, no, "first", 2},
		{second, yes, no, "first", 2},
		{first, yes, yes, "first", 3},
		{second, yes, yes, "first", 3},
		{second, no, no, "second", 4},
	} {
		reason := "first"
		if step.by == second {
			reason = "second"
		}
		if err := step.by.Set(t.Context(), step.status, reason, "message"); err != nil {
			t.Fatal(err)
		}
		got := metav1.Condition{}
		if condition.condition != nil {
			got = *condition.condition
		}
		if got.Status != step.want || got.Reason != step.reason || condition.sets != step.writes {
			t.Errorf("step %d: %s %s after %d writes, want %s %s after %d", i, got.Status, got.Reason, condition.sets,
				step.want, step.reason, step.writes)
		}
	}
}
