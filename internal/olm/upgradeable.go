// Package olm reports to the Operator Lifecycle Manager (OLM) if OLM installed the operator.
package olm

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync"

	"github.com/go-logr/logr"
	operatorv2 "github.com/operator-framework/api/pkg/operators/v2"
	"github.com/operator-framework/operator-lib/conditions"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ConditionNameEnv is the environment variable that OLM sets in the containers of an operator, with
// the name of its OperatorCondition and ClusterServiceVersion.
const ConditionNameEnv = "OPERATOR_CONDITION_NAME"

// Upgradeable is the condition that tells OLM whether it can replace the operator.
type Upgradeable struct {
	// condition is nil outside of OLM.
	condition conditions.Condition

	mu    sync.Mutex
	parts []*Part
}

// NewUpgradeable returns the condition. Outside of OLM, it does nothing and returns no errors. The
// client must not read from the cache, which has no OperatorConditions.
func NewUpgradeable(uncached client.Client, logger logr.Logger) *Upgradeable {
	if os.Getenv(ConditionNameEnv) == "" {
		return &Upgradeable{}
	}

	condition, err := conditions.InClusterFactory{Client: uncached}.NewCondition(operatorv2.ConditionType(operatorv2.Upgradeable))
	if err != nil {
		logger.Error(err, "Failed to find the OperatorCondition, so the operator cannot defer upgrades by OLM")
		return &Upgradeable{}
	}

	return &Upgradeable{condition: condition}
}

// set writes the condition if it changed. OLM creates the OperatorCondition at about the time when
// it starts the operator, so an error can be transient.
func (u *Upgradeable) set(ctx context.Context, status metav1.ConditionStatus, reason, message string) error {
	if u.condition == nil {
		return nil
	}

	stored, err := u.condition.Get(ctx)
	if err == nil && stored.Status == status && stored.Reason == reason && stored.Message == message {
		return nil
	}
	if err := u.condition.Set(ctx, status, conditions.WithReason(reason), conditions.WithMessage(message)); err != nil {
		return fmt.Errorf("failed to set the OperatorCondition: %w", err)
	}
	return nil
}

// Part is one of several components, all of which must allow OLM to replace the operator.
type Part struct {
	of              *Upgradeable
	status          metav1.ConditionStatus
	reason, message string
}

// Part returns another component. The condition becomes True after each part has called Set.
func (u *Upgradeable) Part() *Part {
	part := &Part{of: u}
	u.parts = append(u.parts, part)
	return part
}

// Set writes the condition of the first part that is False, or of the first part if none is.
func (p *Part) Set(ctx context.Context, status metav1.ConditionStatus, reason, message string) error {
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	p.status, p.reason, p.message = status, reason, message

	reported := p.of.parts[0]
	if i := slices.IndexFunc(p.of.parts, func(part *Part) bool { return part.status == metav1.ConditionFalse }); i >= 0 {
		reported = p.of.parts[i]
	} else if slices.ContainsFunc(p.of.parts, func(part *Part) bool { return part.status == "" }) {
		return nil
	}

	return p.of.set(ctx, reported.status, reported.reason, reported.message)
}
