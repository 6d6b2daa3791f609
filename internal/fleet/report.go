package fleet

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const reportEvery = 5 * time.Second

// Reporter lists the objects for a Gate when this process becomes the leader. Then it reports the
// progress of the rollout, and frees slots that instances hold for too long.
type Reporter struct {
	Gate *Gate
	// Names returns the names of all objects.
	Names func(context.Context) ([]types.NamespacedName, error)
	// SetCondition tells OLM whether it may replace the operator.
	SetCondition func(ctx context.Context, status metav1.ConditionStatus, reason, message string) error
	// Instances sets the metrics of the rollout.
	Instances func(waiting, rolling, overdue, failed int)
	Log       logr.Logger
}

// Start implements manager.Runnable. It returns when the context ends.
func (r *Reporter) Start(ctx context.Context) error {
	ticker := time.NewTicker(reportEvery)
	defer ticker.Stop()
	told, alone := verdict{}, holds{}
	r.list(ctx)
	for {
		told = r.report(ctx, told, alone)
		select {
		case <-ctx.Done():
			return nil
		case <-r.Gate.changed:
		case <-ticker.C:
			r.list(ctx)
		}
	}
}

func (r *Reporter) list(ctx context.Context) {
	if !r.Gate.waits() {
		return
	}

	names, err := r.Names(ctx)
	if err != nil {
		r.Log.Error(err, "Failed to list the NginxOperators; no instance is reconciled until this succeeds")
		return
	}

	r.Gate.Listed(names)
}

// report frees expired slots, and reports the progress. It returns the verdict that OLM has.
func (r *Reporter) report(ctx context.Context, told verdict, alone holds) verdict {
	if overdue := r.Gate.Expire(time.Now()); len(overdue) > 0 {
		r.Log.Info("Fleet rollout: instances took too long and lost their slots; no other instance of their namespaces starts",
			"instances", some(overdue), "after", SlotTime.String())
	}

	sum, current := r.Gate.look(alone, time.Now())
	r.Instances(sum.waiting(), sum[Rolling], sum[Overdue], sum[Failed])
	if current == told || current == (verdict{}) {
		return told
	}

	if err := r.SetCondition(ctx, current.status, current.reason, current.message); err != nil {
		r.Log.Info("Failed to set the OperatorCondition, retrying", "error", err.Error())
		return told
	}
	if told.reason != "" || current.reason != ReasonIdle {
		r.Log.Info("Fleet rollout", "reason", current.reason, "message", current.message)
	}

	return current
}
