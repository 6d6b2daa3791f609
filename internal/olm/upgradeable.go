// Package olm speaks with the Operator Lifecycle Manager, where the operator was installed by it.
package olm

import (
	"context"
	"os"
	"time"

	operatorv2 "github.com/operator-framework/api/pkg/operators/v2"
	"github.com/operator-framework/operator-lib/conditions"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// ConditionNameEnv is set by OLM in the containers of an operator, to the name of its OperatorCondition, which is that of
// its ClusterServiceVersion as well; outside OLM it is not set.
const ConditionNameEnv = "OPERATOR_CONDITION_NAME"

// Upgradeable is a runnable of the leader that tells OLM, by the condition Upgradeable of the OperatorCondition, that
// the operator may be replaced. Outside OLM it does nothing, and nothing fails for want of it.
type Upgradeable struct {
	// Client reads and writes the OperatorCondition. It must not be the cache's, which does not hold that kind.
	Client client.Client
}

// NeedLeaderElection makes the leader alone speak for the operator.
func (u *Upgradeable) NeedLeaderElection() bool { return true }

// Start sets the condition, with retries: OLM creates the OperatorCondition about when it starts the operator.
func (u *Upgradeable) Start(ctx context.Context) error {
	logger := log.FromContext(ctx).WithName("olm")
	if os.Getenv(ConditionNameEnv) == "" {
		logger.V(1).Info("Not installed by OLM, no OperatorCondition to set")
		return nil
	}
	condition, err := conditions.InClusterFactory{Client: u.Client}.NewCondition(operatorv2.ConditionType(operatorv2.Upgradeable))
	if err != nil {
		logger.Error(err, "Failed to find the OperatorCondition")
		return nil
	}
	var last error
	backoff := wait.Backoff{Duration: 500 * time.Millisecond, Factor: 2, Steps: 10, Cap: time.Minute}
	err = wait.ExponentialBackoffWithContext(ctx, backoff, func(ctx context.Context) (bool, error) {
		last = setUpgradeable(ctx, condition)
		return last == nil, nil
	})
	if err != nil && ctx.Err() == nil {
		logger.Error(last, "Failed to set the OperatorCondition")
		return nil
	}
	logger.Info("Set the OperatorCondition", "type", operatorv2.Upgradeable, "status", metav1.ConditionTrue)
	return nil
}

// setUpgradeable writes the condition unless it is so already.
func setUpgradeable(ctx context.Context, condition conditions.Condition) error {
	const reason, message = "Idle", "no migration is running, the operator may be upgraded"
	if is, err := condition.Get(ctx); err == nil && is.Status == metav1.ConditionTrue && is.Reason == reason {
		return nil
	}
	return condition.Set(ctx, metav1.ConditionTrue, conditions.WithReason(reason), conditions.WithMessage(message))
}
