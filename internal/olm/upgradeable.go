// Package olm speaks with the Operator Lifecycle Manager, where the operator was installed by it.
package olm

import (
	"context"
	"fmt"
	"os"
	"sync"

	"github.com/go-logr/logr"
	operatorv2 "github.com/operator-framework/api/pkg/operators/v2"
	"github.com/operator-framework/operator-lib/conditions"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ConditionNameEnv is set by OLM in the containers of an operator, to the name of its OperatorCondition, which is that of
// its ClusterServiceVersion as well; outside OLM it is not set.
const ConditionNameEnv = "OPERATOR_CONDITION_NAME"

// Upgradeable is the condition by which OLM is told whether it may replace the operator.
type Upgradeable struct {
	// condition is nil outside OLM.
	condition conditions.Condition

	mu    sync.Mutex
	parts []*Part
}

// NewUpgradeable returns the condition. Outside OLM it does nothing, and nothing fails for want of it. The client must not
// read from the cache, which does not hold OperatorConditions.
func NewUpgradeable(uncached client.Client, logger logr.Logger) *Upgradeable {
	if os.Getenv(ConditionNameEnv) == "" {
		return &Upgradeable{}
	}
	condition, err := conditions.InClusterFactory{Client: uncached}.NewCondition(operatorv2.ConditionType(operatorv2.Upgradeable))
	if err != nil {
		logger.Error(err, "Failed to find the OperatorCondition, OLM will not be told when it must not replace the operator")
		return &Upgradeable{}
	}
	return &Upgradeable{condition: condition}
}

// Set writes the condition unless it is so already. OLM creates the OperatorCondition about when it starts the operator, so
// an error may pass by itself.
func (u *Upgradeable) Set(ctx context.Context, status metav1.ConditionStatus, reason, message string) error {
	if u.condition == nil {
		return nil
	}
	if is, err := u.condition.Get(ctx); err == nil && is.Status == status && is.Reason == reason && is.Message == message {
		return nil
	}
	if err := u.condition.Set(ctx, status, conditions.WithReason(reason), conditions.WithMessage(message)); err != nil {
		return fmt.Errorf("failed to set the OperatorCondition: %w", err)
	}
	return nil
}
