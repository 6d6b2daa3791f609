package fleet

import (
	"context"
	"slices"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// retryAfter is the time between a failed request and the next attempt.
const retryAfter = 5 * time.Second

// Condition tells OLM whether it may replace the operator.
type Condition interface {
	Set(ctx context.Context, status metav1.ConditionStatus, reason, message string) error
}

// Metrics show the progress of the rollout.
type Metrics interface {
	Instances(waiting, rolling, overdue, failed int)
}

// Reporter lists the objects for a Gate when this process becomes the leader. Then it reports the
// progress of the rollout, and frees slots that instances hold for too long.
type Reporter struct {
	Gate *Gate
	// Names returns the names of all objects.
	Names     func(context.Context) ([]types.NamespacedName, error)
	Condition Condition
	Metrics   Metrics
	Log       logr.Logger
}

// Start implements manager.Runnable. It returns when the context ends.
func (r *Reporter) Start(ctx context.Context) error {
	for {
		err := r.list(ctx)
		if err == nil {
			break
		}
		r.Log.Error(err, "Failed to list the objects, no object is reconciled before that")
		if !sleep(ctx, retryAfter) {
			return nil
		}
	}

	var told verdict
	alone, listed := holds{}, time.Now()
	for ctx.Err() == nil {
		var relist time.Time
		if r.Gate.Waits() {
			if time.Since(listed) >= retryAfter && r.list(ctx) == nil {
				listed = time.Now()
			}
			relist = time.Now().Add(retryAfter)
		}
		overdue, expires := r.Gate.Expire(time.Now())
		if len(overdue) > 0 {
			r.Log.Info("Fleet rollout: instances roll for too long and have lost their slots, their namespaces start no other",
				"instances", some(overdue), "after", SlotTime.String())
		}
		now := r.look(alone)
		wait := until(relist, expires, now.ends)
		if now.known && now.verdict != told {
			if err := r.Condition.Set(ctx, now.status, now.reason, now.message); err == nil {
				if told.reason != "" || now.reason != ReasonIdle {
					r.Log.Info("Fleet rollout: "+now.message, "reason", now.reason)
				}
				told = now.verdict
			} else {
				r.Log.Info("Trying again to tell OLM", "reason", err.Error())
				wait = time.After(retryAfter)
			}
		}
		select {
		case <-ctx.Done():
		case <-wait:
		case <-r.Gate.changed:
		}
	}
	return nil
}

func (r *Reporter) list(ctx context.Context) error {
	names, err := r.Names(ctx)
	if err != nil {
		return err
	}
	r.Gate.Listed(names)
	return nil
}

// look updates the metrics and returns the current verdict on the rollout.
func (r *Reporter) look(alone holds) timed {
	sum, now := r.Gate.look(alone, time.Now())
	r.Metrics.Instances(sum.Waiting(), sum.Rolling, sum.Overdue, sum.Failed)
	return now
}

// until returns a channel that receives at the earliest of some times. It ignores zero times, and
// returns nil if all are zero.
func until(times ...time.Time) <-chan time.Time {
	times = slices.DeleteFunc(times, time.Time.IsZero)
	if len(times) == 0 {
		return nil
	}
	return time.After(time.Until(slices.MinFunc(times, time.Time.Compare)))
}

// sleep waits for a duration. It returns false if the context ends first.
func sleep(ctx context.Context, duration time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(duration):
		return true
	}
}
