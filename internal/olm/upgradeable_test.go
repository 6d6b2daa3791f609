package olm

import (
	"context"
	"errors"
	"testing"

	"github.com/go-logr/logr"
	"github.com/operator-framework/operator-lib/conditions"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// recorded is the condition of an OperatorCondition in memory.
type recorded struct {
	condition *metav1.Condition
	sets      int
	err       error
}

func (r *recorded) Get(context.Context) (*metav1.Condition, error) {
	if r.condition == nil {
		return nil, errors.New("not found")
	}
	return r.condition, nil
}

func (r *recorded) Set(_ context.Context, status metav1.ConditionStatus, options ...conditions.Option) error {
	if r.err != nil {
		return r.err
	}
	r.sets++
	r.condition = &metav1.Condition{Status: status}
	for _, option := range options {
		option(r.condition)
	}
	return nil
}

// TestOutsideOLM verifies that Set does nothing and returns no error outside of OLM.
func TestOutsideOLM(t *testing.T) {
	t.Setenv(ConditionNameEnv, "")
	upgradeable := NewUpgradeable(nil, logr.Discard())
	if err := upgradeable.set(t.Context(), metav1.ConditionFalse, "Reason", "message"); err != nil {
		t.Error(err)
	}
}

// TestSet verifies that the condition is written only if it changes.
func TestSet(t *testing.T) {
	condition := &recorded{}
	upgradeable := &Upgradeable{condition: condition}
	set := func(status metav1.ConditionStatus, message string) error {
		return upgradeable.set(t.Context(), status, "Reason", message)
	}
	for _, step := range []struct {
		status  metav1.ConditionStatus
		message string
		sets    int
	}{
		{metav1.ConditionTrue, "idle", 1},
		{metav1.ConditionTrue, "idle", 1},
		{metav1.ConditionFalse, "idle", 2},
		{metav1.ConditionFalse, "busy", 3},
	} {
		if err := set(step.status, step.message); err != nil {
			t.Fatal(err)
		}
		if is := condition.condition; condition.sets != step.sets || is.Status != step.status || is.Reason != "Reason" ||
			is.Message != step.message {
			t.Errorf("%d writes instead of %d, %+v", condition.sets, step.sets, is)
		}
	}
	condition.err = errors.New("conflict")
	if err := set(metav1.ConditionTrue, "idle"); err == nil {
		t.Error("a failed write was not told")
	}
}

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
