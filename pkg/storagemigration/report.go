package storagemigration

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// Reasons of the Events on the CRD and on refused objects, and of the OperatorCondition Upgradeable:
// ReasonIdle for True, and ReasonMigrating and ReasonFailed for False.
const (
	ReasonStarted   = "StorageMigrationStarted"
	ReasonSucceeded = "StorageMigrationSucceeded"
	ReasonFailed    = "StorageMigrationFailed"
	ReasonIdle      = "Idle"
	ReasonMigrating = "MigratingStorage"
)

// namedAtOnce refused objects are reported per reconcile. A message names namedInMessage of them.
const namedAtOnce, namedInMessage = 20, 3

// report updates metrics and condition, and reports the start and the end once.
func (r *Reconciler) report(ctx context.Context, s *situation, next action) error {
	if next != actNothing {
		r.settled = false
		if r.began.IsZero() {
			r.began = time.Now()
			r.Metrics.Running(true)
			message := fmt.Sprintf("moving stored objects to %s (status.storedVersions is %s)", s.target,
				strings.Join(s.crd.Status.StoredVersions, ", "))
			r.event(ctx, s, corev1.EventTypeNormal, ReasonStarted, message)
		}
		return r.holdOff(ctx, s.target)
	}

	r.settled = s.pruned()
	if !r.began.IsZero() {
		if r.settled {
			r.Metrics.Finished(true)
			message := fmt.Sprintf("moved all stored objects to %s in %s", s.target, time.Since(r.began).Round(time.Second/10))
			r.event(ctx, s, corev1.EventTypeNormal, ReasonSucceeded, message)
		}
		r.progress = progress{settled: r.settled, generation: r.generation, since: r.since}
	}

	r.Metrics.Running(false)
	r.Metrics.Unmigrated(0)
	return r.Condition.Set(ctx, metav1.ConditionTrue, ReasonIdle, "no storage migration is running, so OLM may upgrade the operator")
}

// holdOff keeps OLM from replacing the operator while stored objects are not migrated.
func (r *Reconciler) holdOff(ctx context.Context, target string) error {
	if r.problem != "" {
		return r.Condition.Set(ctx, metav1.ConditionFalse, ReasonFailed, r.problem)
	}
	return r.Condition.Set(ctx, metav1.ConditionFalse, ReasonMigrating, "stored objects are being moved to "+target)
}

func (r *Reconciler) event(ctx context.Context, s *situation, kind, reason, message string) {
	log.FromContext(ctx).Info("Storage migration", "reason", reason, "message", message)
	r.Recorder.Eventf(s.crd, nil, kind, reason, "Migrate", "%s", message)
}

func (r *Reconciler) failed(ctx context.Context, s *situation, err error) error {
	r.Metrics.Finished(false)
	if r.problem == err.Error() {
		return err
	}

	r.problem = err.Error()
	r.event(ctx, s, corev1.EventTypeWarning, ReasonFailed, r.problem)
	return errors.Join(err, r.holdOff(ctx, s.target))
}

func describe(failed []refused) error {
	var names []string
	for _, f := range failed[:min(len(failed), namedInMessage)] {
		names = append(names, f.String())
	}

	more := ""
	if len(failed) > namedInMessage {
		more = fmt.Sprintf("; and %d more", len(failed)-namedInMessage)
	}
	return fmt.Errorf("failed to rewrite %d objects, retrying: %s%s", len(failed), strings.Join(names, "; "), more)
}

// nameRefused reports each refused object, unless it was refused for the same reason before.
func (r *Reconciler) nameRefused(ctx context.Context, failed, reported []refused) {
	known := sets.New[string]()
	for _, f := range reported {
		known.Insert(f.String())
	}

	unreported := slices.DeleteFunc(slices.Clone(failed), func(f refused) bool { return known.Has(f.String()) })
	for _, f := range unreported[:min(len(unreported), namedAtOnce)] {
		log.FromContext(ctx).Error(f.err, "Failed to rewrite an object", "namespace", f.object.Namespace, "name", f.object.Name)
		r.Recorder.Eventf(f.object, nil, corev1.EventTypeWarning, ReasonFailed, "Migrate",
			"cannot store the object as %s, so the upgrade of the operator cannot finish: %v. Correct the object", r.Target.Version, f.err)
	}
}
