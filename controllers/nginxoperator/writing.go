package nginxoperator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/defaults"
	"github.com/example/nginx-operator/internal/live"
	"github.com/example/nginx-operator/internal/operand"
	"github.com/example/nginx-operator/internal/requeue"
	"github.com/example/nginx-operator/internal/revision"
	"github.com/example/nginx-operator/internal/rollout"
	"github.com/example/nginx-operator/internal/status"
	"github.com/example/nginx-operator/pkg/apply"
)

// carryOut applies a decision. If there is nothing to apply, it only removes the bridge of an
// earlier change.
func (r *Reconciler) carryOut(ctx context.Context, object *v1alpha2.NginxOperator, done results) (_ results, err error) {
	if done.Apply == nil || done.State == rollout.StateUnusable && object.Spec.Paused {
		done.again, err = r.bridges(done.live).Settle(ctx, object)
		return done, err
	}

	rendered, err := r.render(ctx, object, done.live, done.Decision)
	if err != nil {
		// The live children are unknown. Report the declaration without children.
		done.Applied = &revision.Rendering{Pods: rendered.Pods}
		return done, err
	}

	changed, err := r.change(ctx, object, done, rendered)
	if forged := apply.IsForged(err); forged != nil {
		done.live, done.Applied = changed.live, changed.Applied
		return r.replace(ctx, object, done, rendered, forged)
	}

	return changed, err
}

// change applies the children, or describes the changes if the object is paused.
func (r *Reconciler) change(
	ctx context.Context, object *v1alpha2.NginxOperator, done results, rendered revision.Rendering,
) (_ results, err error) {
	done.Applied = &rendered
	if object.Spec.Paused {
		if _, done.again, err = r.bridges(done.live).Ensure(ctx, object, rendered.Running, nil); err == nil {
			done.Waiting, err = r.pending(ctx, object, done.live, rendered)
		}
		return done, err
	}

	done.hold, done.again, err = r.bridges(done.live).Ensure(ctx, object, rendered.Running, rendered.Ports)
	if err != nil || done.hold {
		return done, err
	}

	applied, state, err := r.apply(ctx, object, done, rendered)
	done.live = state
	delays := []time.Duration{done.again, applied.RequeueAfter}
	if rendered.HeldRoute {
		delays = append(delays, requeue.UntilObserved)
	}
	if rendered.Interim && err == nil {
		delays = append(delays, requeue.Soon) // no event follows the operator's own writes
	}
	for _, contested := range applied.Contested {
		done.Independent = append(done.Independent, status.ContestedFailure(contested))
		delays = append(delays, contested.Left)
	}

	for _, failed := range applied.Failures {
		if forged := apply.IsForged(failed.Err); forged != nil {
			err = errors.Join(err, r.Applier.Delete(ctx, forged.Child))
		}

		done.Independent = append(done.Independent, *status.WriteFailure(failed.Err, &object.Spec))
		again, retry := retryOf(failed.Err, &object.Spec)
		delays, done.retry = append(delays, again), errors.Join(done.retry, retry)
	}

	done.again = requeue.Soonest(delays...)
	return done, err
}

// mountedBy returns the ConfigMaps that the Pods of a declaration mount.
func mountedBy(of *revision.Declaration) []client.Object {
	return slices.DeleteFunc(slices.Clone(of.Children), func(child client.Object) bool {
		return operand.KindOf(child) != "ConfigMap"
	})
}

// apply writes the children that differ, and deletes those that are no longer declared. A refused
// child that no Pod depends on, or a refused deletion, does not stop the other writes and
// deletions. No refused child stops a rollback. apply also returns the live state after the writes.
func (r *Reconciler) apply(
	ctx context.Context, object *v1alpha2.NginxOperator, done results, rendered revision.Rendering,
) (apply.Applied, live.State, error) {
	state, content := done.live, rendered.Pods.Content
	ordered, independent := inOrder(rendered)
	applied, err := r.Applier.ApplyAll(ctx, object, state, content, ordered, independent)
	state = state.With(applied.Written...)
	if err != nil && done.State == rollout.StateRolledBack && !apply.StartsOver(err) && apply.IsForged(err) == nil {
		pods, podsErr := r.Applier.ApplyAll(ctx, object, state, content, slices.DeleteFunc(ordered, operand.IsEntrance), nil)
		state = state.With(pods.Written...)
		if apply.StartsOver(podsErr) {
			err = podsErr
		}
	}

	if err != nil {
		return apply.Applied{}, state, err
	}

	needed := slices.Concat(ordered, independent)
	if done.Good != nil {
		needed = append(needed, mountedBy(done.Good)...)
	}

	failed, state, err := r.deleteStale(ctx, object, state, rendered, needed)
	applied.Failures = append(applied.Failures, failed...)
	return applied, state, err
}

// inOrder returns the children that Pods depend on, and the Deployment, in the order of their
// writes, and the other children, which are independent of each other. An existing Service precedes
// the NetworkPolicy: its version refuses ports that come from an older Service. A new one follows
// it, so that no Service without Pods is created if a name is taken.
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
		stale = slices.DeleteFunc(stale, operand.IsEntrance)
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

// pending describes the writes of apply that a pause blocks.
func (r *Reconciler) pending(
	ctx context.Context, object *v1alpha2.NginxOperator, state live.State, rendered revision.Rendering,
) ([]string, error) {
	settled := isSettled(object, state, rendered)
	differ, err := r.Applier.Pending(ctx, object, state, rendered.Pods.Content, rendered.Children, settled)
	if err != nil {
		return nil, err
	}

	stale, err := staleFor(state, rendered, rendered.Children)
	if err != nil {
		return nil, err
	}

	if object.Spec.Autoscaling != nil || operand.ReplicasOf(object, state.Deployment()).Number != defaults.Replicas(&object.Spec) {
		// An autoscaler may alternate between one replica and more. The PodDisruptionBudget is not
		// a pending change then.
		differ, stale = slices.DeleteFunc(differ, operand.IsBudget), slices.DeleteFunc(stale, operand.IsBudget)
	}

	var writes []string
	for _, child := range differ {
		writes = append(writes, fmt.Sprintf("%s %q", operand.KindOf(child), child.GetName()))
	}
	for _, child := range stale {
		writes = append(writes, fmt.Sprintf("the deletion of %s %q", operand.KindOf(child), child.GetName()))
	}

	return writes, nil
}

// isSettled reports whether no change of a paused object waits, according to its status, and
// neither its spec nor a referenced object has changed since. A change by a release of the operator
// does not make such an object unready.
func isSettled(paused *v1alpha2.NginxOperator, state live.State, of revision.Rendering) bool {
	deployment := state.Deployment()
	if deployment == nil || paused.Status.ObservedGeneration != paused.Generation ||
		!of.Pods.Change.SameUser(revision.ChangeOf(paused, deployment)) {
		return false
	}

	reasonOf := func(condition string) string {
		return ptr.Deref(meta.FindStatusCondition(paused.Status.Conditions, condition), metav1.Condition{}).Reason
	}
	return reasonOf(v1alpha2.ConditionProgressing) == v1alpha2.ReasonPaused && reasonOf(v1alpha2.ConditionReady) != v1alpha2.ReasonPaused
}
