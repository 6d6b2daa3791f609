package nginxoperator

import (
	"context"
	"errors"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/apply"
	"github.com/example/nginx-operator/internal/live"
	"github.com/example/nginx-operator/internal/operand"
	"github.com/example/nginx-operator/internal/record"
	"github.com/example/nginx-operator/internal/requeue"
	"github.com/example/nginx-operator/internal/rollout"
	"github.com/example/nginx-operator/internal/status"
)

// writing is the result of applying a decision.
type writing struct {
	status.Written
	// live is the live state after the writes.
	live live.State
	// hold means that nothing may be changed or reported before the next reconcile.
	hold bool
	// retry is the error of a child that no Pod depends on, if its write is retried with back-off.
	retry error
	// again is the delay of the next reconcile, or 0 if only an event starts it.
	again time.Duration
}

// failedWriting returns the result if an error precedes all writes. settled is the delay of the next
// reconcile.
func failedWriting(state live.State, settled time.Duration, err error, spec *v1alpha2.NginxOperatorSpec) writing {
	return writing{live: state, again: settled, Written: status.Written{Failure: status.WriteFailure(err, spec)}}
}

// carryOut applies a decision. If there is nothing to apply, it only removes the bridge of an
// earlier change.
func (r *Reconciler) carryOut(
	ctx context.Context, object *v1alpha2.NginxOperator, state live.State, decided rollout.Decision,
) (writing, error) {
	if decided.Apply == nil || decided.State == rollout.StateBlocked && object.Spec.Paused {
		again, err := r.bridges(state).Settle(ctx, object)
		return failedWriting(state, again, err, &object.Spec), err
	}

	spec := &decided.Apply.Object.Spec
	running, err := state.Running()
	rendered := record.Rendering{Declaration: decided.Apply}
	if err == nil {
		rendered, err = r.renderChildren(ctx, object, state, wantedOf(decided, decided.Apply, running))
	}
	if err != nil {
		// The live children are unknown. Report the declaration without children.
		failed := status.Written{Applied: &record.Rendering{Declaration: rendered.Declaration}, Failure: status.WriteFailure(err, spec)}
		return writing{Written: failed, live: state}, err
	}
	// The annotation of a Deployment is gone with it. The record of a spec that is not applied must
	// not be, unless the Deployment would be created from the spec.
	isNeeded := decided.State == rollout.StateBlocked || decided.State == rollout.StateRolledBack
	rendered.Recorded = rendered.Recorded || isNeeded
	out, err := r.change(ctx, object, state, rendered, decided)
	if forged := apply.IsForged(err); forged != nil && !record.IsUnusable(err) {
		out, err = r.replace(ctx, object, out.live, rendered, forged, decided)
	}
	out.Failure = status.WriteFailure(err, spec)
	return out, err
}

// change applies the children, or describes the changes if the object is paused.
func (r *Reconciler) change(
	ctx context.Context, object *v1alpha2.NginxOperator, state live.State, of record.Rendering, decided rollout.Decision,
) (writing, error) {
	out := writing{Written: status.Written{Applied: &of}, live: state}
	spec, running := &of.Object.Spec, of.Inputs.Running
	if object.Spec.Paused {
		var err error
		if _, out.again, err = r.bridges(state).Ensure(ctx, object, running, nil); err == nil {
			out.Waiting, err = r.pending(ctx, object, state, of.WithLiveRecord())
		}
		return out, err
	}

	hold, bridged, err := r.bridges(state).Ensure(ctx, object, running, of.Ports)
	if err != nil || hold {
		out.hold, out.again = hold, bridged
		return out, err
	}
	var applied apply.Applied
	applied, out.live, err = r.apply(ctx, object, state, of, decided)
	delays := []time.Duration{bridged, applied.RequeueAfter}
	if of.HeldRoute {
		delays = append(delays, requeue.UntilObserved)
	}
	if of.Interim {
		delays = append(delays, requeue.Soon) // no event follows the operator's own writes
	}
	for _, contested := range applied.Contested {
		out.Independent = append(out.Independent, status.ContestedFailure(contested))
		delays = append(delays, contested.Left)
	}
	for _, failed := range applied.Failures {
		out.Independent = append(out.Independent, *status.WriteFailure(failed.Err, spec))
		again, err := retryOf(failed.Err, spec)
		delays, out.retry = append(delays, again), errors.Join(out.retry, err)
	}
	out.again = requeue.Soonest(delays...)
	return out, err
}

// apply writes the children that differ, and deletes those that are no longer declared. It writes
// the record before the Deployment that names it. A refused child that no Pod depends on, or a
// refused deletion, does not stop the other writes and deletions. No refused child stops a rollback.
// apply also returns the live state after the writes.
func (r *Reconciler) apply(
	ctx context.Context, object *v1alpha2.NginxOperator, state live.State, of record.Rendering, decided rollout.Decision,
) (apply.Applied, live.State, error) {
	records, err := r.store(state).Earlier(ctx, object, of, decided.Good)
	if err != nil {
		return apply.Applied{}, state, err
	}
	if of.Recorded {
		records = append(records, of.Revision)
	}
	ordered, independent := inOrder(of, records)
	applied, err := r.Applier.ApplyAll(ctx, object, state, of.Contents(), ordered, independent)
	state = state.With(applied.Written...)
	if err != nil && decided.State == rollout.StateRolledBack && !apply.StartsOver(err) && apply.IsForged(err) == nil {
		needed, again := r.Applier.ApplyAll(ctx, object, state, of.Contents(), slices.DeleteFunc(ordered, operand.IsEntrance), nil)
		state = state.With(needed.Written...)
		if apply.StartsOver(again) {
			err = again
		}
	}
	if err != nil {
		return apply.Applied{}, state, err
	}
	needed := slices.Concat(ordered, independent, []client.Object{of.Revision})
	if decided.Good != nil {
		needed = append(needed, decided.Good.Revision)
	}
	failed, state, err := r.deleteStale(ctx, object, state, of, needed)
	applied.Failures = append(applied.Failures, failed...)
	return applied, state, err
}

// inOrder returns the children that Pods depend on, the records, and the Deployment, in the order of
// their writes, and the other children, which are independent of each other. The records precede
// the Deployment, so that the declaration of all Pods is recorded.
//
// An existing Service precedes the NetworkPolicy: its version refuses ports that come from an older
// Service. A new one follows it and the records, so that no Service without Pods is created if one
// of their names is taken.
func inOrder(of record.Rendering, records []client.Object) (ordered, independent []client.Object) {
	var services, policies, deployments []client.Object
	for _, child := range of.Children {
		switch child.(type) {
		case *corev1.ConfigMap:
			ordered = append(ordered, child)
		case *corev1.Service:
			services = append(services, child)
		case *networkingv1.NetworkPolicy:
			policies = append(policies, child)
		case *appsv1.Deployment:
			deployments = append(deployments, child)
		default:
			independent = append(independent, child)
		}
	}
	if of.Inputs.Running.ServiceVersion == "" {
		return slices.Concat(ordered, policies, records, services, deployments), independent
	}
	return slices.Concat(ordered, services, policies, records, deployments), independent
}

// retryOf returns the delay of the next write after an error, or the error if it is retried with
// back-off.
func retryOf(err error, spec *v1alpha2.NginxOperatorSpec) (time.Duration, error) {
	failed := status.WriteFailure(err, spec)
	if failed == nil {
		return 0, nil
	}
	switch {
	case apply.IsNotOurs(err) != nil, status.InTerminatingNamespace(err):
		return requeue.AfterConflict, nil //nolint:nilerr // another try may succeed, and needs no back-off
	case failed.Reason == v1alpha2.ReasonInvalidConfiguration && !failed.CanPass():
		return requeue.AfterVerdict, nil
	default:
		return 0, err
	}
}

// deleteStale deletes the children that are no longer declared. It returns the refused deletions,
// and the live state after the others.
func (r *Reconciler) deleteStale(
	ctx context.Context, object *v1alpha2.NginxOperator, state live.State, of record.Rendering, children []client.Object,
) (failed []apply.Failure, after live.State, err error) {
	stale, err := state.Stale(children, operand.Unrendered(&of.EntranceObject().Spec, of.Inputs))
	if err != nil {
		return nil, state, err
	}
	if len(stale) > 0 {
		if err := r.Applier.Confirm(ctx, object); err != nil {
			return nil, state, err
		}
	}
	for _, child := range stale {
		err := r.Applier.Delete(ctx, child)
		if apply.StartsOver(err) || ctx.Err() != nil {
			return nil, state, err
		}
		if err != nil {
			failed = append(failed, apply.Failure{Child: child, Err: err})
			continue
		}
		state = state.Without(child)
	}
	return failed, state, nil
}
