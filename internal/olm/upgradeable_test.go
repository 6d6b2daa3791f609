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
