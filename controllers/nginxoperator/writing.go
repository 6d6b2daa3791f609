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
	"github.com/example/nginx-operator/internal/live"
	"github.com/example/nginx-operator/internal/operand"
	"github.com/example/nginx-operator/internal/requeue"
	"github.com/example/nginx-operator/internal/revision"
	"github.com/example/nginx-operator/internal/rollout"
	"github.com/example/nginx-operator/internal/status"
	"github.com/example/nginx-operator/pkg/apply"
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

// failedWriting returns the result if an error precedes all writes. settled is the delay of the
// next reconcile.
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

	rendered, err := r.render(ctx, object, state, decided)
	if err != nil {
		// The live children are unknown. Report the declaration without children.
		failed := status.Written{Applied: &revision.Rendering{Pods: rendered.Pods}, Failure: status.WriteFailure(err, &object.Spec)}
		return writing{Written: failed, live: state}, err
	}
	out, err := r.change(ctx, object, state, rendered, decided)
	if forged := apply.IsForged(err); forged != nil {
		out, err = r.replace(ctx, object, out.live, rendered, forged, decided)
	}
	out.Failure = status.WriteFailure(err, &object.Spec)
	return out, err
}

// change applies the children, or describes the changes if the object is paused.
func (r *Reconciler) change(
	ctx context.Context, object *v1alpha2.NginxOperator, state live.State, of revision.Rendering, decided rollout.Decision,
) (writing, error) {
	out := writing{Written: status.Written{Applied: &of}, live: state}
	spec, running := &object.Spec, of.Running
	if object.Spec.Paused {
		var err error
		if _, out.again, err = r.bridges(state).Ensure(ctx, object, running, nil); err == nil {
			out.Waiting, err = r.pending(ctx, object, state, of)
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
		if forged := apply.IsForged(failed.Err); forged != nil {
			err = errors.Join(err, r.Applier.Delete(ctx, forged.Child))
		}
		out.Independent = append(out.Independent, *status.WriteFailure(failed.Err, spec))
		again, err := retryOf(failed.Err, spec)
		delays, out.retry = append(delays, again), errors.Join(out.retry, err)
	}
	out.again = requeue.Soonest(delays...)
	return out, err
}

// mountedBy returns the ConfigMaps that the Pods of a declaration mount.
func mountedBy(of *revision.Declaration) []client.Object {
	return slices.DeleteFunc(slices.Clone(of.Children), func(child client.Object) bool { return live.KindOf(child) != "ConfigMap" })
}

// apply writes the children that differ, and deletes those that are no longer declared. A refused
// child that no Pod depends on, or a refused deletion, does not stop the other writes and
// deletions. No refused child stops a rollback. apply also returns the live state after the writes.
func (r *Reconciler) apply(
	ctx context.Context, object *v1alpha2.NginxOperator, state live.State, of revision.Rendering, decided rollout.Decision,
) (apply.Applied, live.State, error) {
	ordered, independent := inOrder(of)
	applied, err := r.Applier.ApplyAll(ctx, object, state, of.Pods.Content, ordered, independent)
	state = state.With(applied.Written...)
	if err != nil && decided.State == rollout.StateRolledBack && !apply.StartsOver(err) && apply.IsForged(err) == nil {
		needed, again := r.Applier.ApplyAll(ctx, object, state, of.Pods.Content, slices.DeleteFunc(ordered, operand.IsEntrance), nil)
		state = state.With(needed.Written...)
		if apply.StartsOver(again) {
			err = again
		}
	}
	if err != nil {
		return apply.Applied{}, state, err
	}
	needed := slices.Concat(ordered, independent)
	if decided.Good != nil {
		needed = append(needed, mountedBy(decided.Good)...)
	}
	failed, state, err := r.deleteStale(ctx, object, state, of, needed)
	applied.Failures = append(applied.Failures, failed...)
	return applied, state, err
}

// inOrder returns the children that Pods depend on, and the Deployment, in the order of their
// writes, and the other children, which are independent of each other.
//
// An existing Service precedes the NetworkPolicy: its version refuses ports that come from an older
// Service. A new one follows it, so that no Service without Pods is created if a name is taken.
func inOrder(of revision.Rendering) (ordered, independent []client.Object) {
	var services, policies, deployments []client.Object
	for _, child := range of.Children {
		switch child.(type) {
		case *corev1.ConfigMap:
			if of.Pods.Object == nil { // one that is lost cannot be rendered, and holds nothing
				independent = append(independent, child)
				continue
			}
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
	if of.Running.ServiceVersion == "" {
		return slices.Concat(ordered, policies, services, deployments), independent
	}
	return slices.Concat(ordered, services, policies, deployments), independent
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

// staleFor returns the children that are no longer declared. An entrance that is not known stays.
func staleFor(state live.State, of revision.Rendering, children []client.Object) ([]client.Object, error) {
	stale, err := state.Stale(children, of.Unrendered())
	if of.Entrance == nil {
		stale = slices.DeleteFunc(stale, func(child client.Object) bool { return slices.Contains(operand.EntranceKinds(), live.KindOf(child)) })
	}
	return stale, err
}

// deleteStale deletes the children that are no longer declared. It returns the refused deletions,
// and the live state after the others.
func (r *Reconciler) deleteStale(
	ctx context.Context, object *v1alpha2.NginxOperator, state live.State, of revision.Rendering, children []client.Object,
) (failed []apply.Failure, after live.State, err error) {
	stale, err := staleFor(state, of, children)
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
