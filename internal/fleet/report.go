package fleet

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
)

// retryAfter is how soon what failed is tried again.
const retryAfter = 5 * time.Second

// Reasons of the OperatorCondition Upgradeable.
const (
	ReasonIdle    = "Idle"
	ReasonRolling = "FleetRollout"
	ReasonStopped = "FleetRolloutStopped"
)

// Condition is how OLM is told whether the operator may be replaced.
type Condition interface {
	Set(ctx context.Context, status metav1.ConditionStatus, reason, message string) error
}

// Metrics show how far the rollout is.
type Metrics interface {
	Instances(waiting, rolling, failed int)
}

// Reporter lists the objects for a Gate when this process has become the leader, and reports on the rollout from then on.
type Reporter struct {
	Gate *Gate
	// Cache has all objects.
	Cache     client.Reader
	Condition Condition
	Metrics   Metrics
	Log       logr.Logger
}

// Start implements manager.Runnable. It ends with the context.
func (r *Reporter) Start(ctx context.Context) error {
	for {
		err := r.list(ctx)
		if err == nil {
			break
		}
		r.Log.Error(err, "Failed to list the objects, no instance is rolled before that")
		if !sleep(ctx, retryAfter) {
			return nil
		}
	}
	var told verdict
	for {
		now, known := r.look()
		if known && now != told {
			if err := r.Condition.Set(ctx, now.status, now.reason, now.message); err != nil {
				r.Log.Info("Trying again to tell OLM", "reason", err.Error())
				if !sleep(ctx, retryAfter) {
					return nil
				}
				continue
			}
			if told.reason != "" || now.reason != ReasonIdle {
				r.Log.Info("Fleet rollout: "+now.message, "reason", now.reason)
			}
			told = now
		}
		select {
		case <-ctx.Done():
			return nil
		case <-r.Gate.changed:
		}
	}
}

func (r *Reporter) list(ctx context.Context) error {
	list := &v1alpha2.NginxOperatorList{}
	if err := r.Cache.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return err
	}
	objects := make([]types.NamespacedName, 0, len(list.Items))
	for i := range list.Items {
		objects = append(objects, client.ObjectKeyFromObject(&list.Items[i]))
	}
	r.Gate.Listed(objects)
	return nil
}

// verdict is what OLM is told.
type verdict struct {
	status          metav1.ConditionStatus
	reason, message string
}

// look returns what OLM is to be told, where that is known.
func (r *Reporter) look() (verdict, bool) {
	now := r.Gate.Counts()
	r.Metrics.Instances(now.Waiting(), now.Rolling, now.Failed)
	return verdictOf(now, r.Gate.Stopping())
}

// verdictOf has no counts in its message: each one costs a write.
func verdictOf(now Counts, stopping string) (verdict, bool) {
	switch {
	case now.Failed > 0:
		return verdict{metav1.ConditionFalse, ReasonStopped, fmt.Sprintf(
			"the rollout of this release to the instances has stopped because it failed for %s", stopping)}, true
	case now.Waiting()+now.Rolling > 0:
		return verdict{metav1.ConditionFalse, ReasonRolling, "instances are being rolled to what this release makes of them"}, true
	}
	return verdict{metav1.ConditionTrue, ReasonIdle, "no instance waits for a rollout, the operator may be upgraded"}, now.Unseen == 0
}

// sleep reports whether the time has passed before the context ended.
func sleep(ctx context.Context, duration time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(duration):
		return true
	}
}
