package olm

import (
	"context"
	"errors"
	"testing"

	"github.com/operator-framework/operator-lib/conditions"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// recorded is an OperatorCondition's condition in memory.
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

// Outside OLM there is nothing to set, and that is no error.
func TestOutsideOLM(t *testing.T) {
	t.Setenv(ConditionNameEnv, "")
	if err := (&Upgradeable{}).Start(t.Context()); err != nil {
		t.Error(err)
	}
}

// The condition is written once; a restart of the operator writes nothing.
func TestSetUpgradeable(t *testing.T) {
	condition := &recorded{}
	for range 2 {
		if err := setUpgradeable(t.Context(), condition); err != nil {
			t.Fatal(err)
		}
	}
	if condition.sets != 1 || condition.condition.Status != metav1.ConditionTrue || condition.condition.Reason == "" || condition.condition.Message == "" {
		t.Errorf("%d writes, %+v", condition.sets, condition.condition)
	}
	condition.condition.Status, condition.err = metav1.ConditionFalse, errors.New("conflict")
	if err := setUpgradeable(t.Context(), condition); err == nil {
		t.Error("a failed write was not told")
	}
}
