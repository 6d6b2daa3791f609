package nginxoperator

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/defaults"
	"github.com/example/nginx-operator/internal/live"
	"github.com/example/nginx-operator/internal/operand"
	"github.com/example/nginx-operator/internal/record"
	"github.com/example/nginx-operator/internal/wellknown"
)

// pending describes the writes of apply that a pause blocks.
func (r *Reconciler) pending(
	ctx context.Context, paused *v1alpha2.NginxOperator, state live.State, of record.Rendering,
) ([]string, error) {
	object, in, children := of.Object, of.Inputs, of.Children
	differ, err := r.Applier.Pending(ctx, object, state, of.Contents(), children, isSettled(paused, of))
	if err != nil {
		return nil, err
	}
	stale, err := state.Stale(children, operand.Unrendered(&of.EntranceObject().Spec, in))
	if err != nil {
		return nil, err
	}
	var out []string
	if object.Spec.Autoscaling != nil || operand.ReplicasOf(object, in.Deployment).Number != defaults.Replicas(&object.Spec) {
		// An autoscaler may alternate between one replica and more. The PodDisruptionBudget is not
		// a pending change then.
		differ, stale = slices.DeleteFunc(differ, operand.IsBudget), slices.DeleteFunc(stale, operand.IsBudget)
	}
	for _, child := range differ {
		out = append(out, fmt.Sprintf("%s %q", live.KindOf(child), child.GetName()))
	}
	for _, child := range stale {
		out = append(out, fmt.Sprintf("the deletion of %s %q", live.KindOf(child), child.GetName()))
	}
	return out, nil
}

// isSettled reports whether no change of a paused object waits, according to its status, and neither
// its spec nor a referenced object has changed since. A release of the operator that declares
// children differently is no reason to report that the object is not Ready.
func isSettled(paused *v1alpha2.NginxOperator, of record.Rendering) bool {
	live := of.Inputs.Deployment
	if live == nil || paused.Status.ObservedGeneration != paused.Generation ||
		of.Revision.Name != record.Name(paused, live.Labels[wellknown.LabelRecord]) {
		return false
	}
	reasonOf := func(condition string) string {
		return ptr.Deref(meta.FindStatusCondition(paused.Status.Conditions, condition), metav1.Condition{}).Reason
	}
	return reasonOf(v1alpha2.ConditionProgressing) == v1alpha2.ReasonPaused && reasonOf(v1alpha2.ConditionReady) != v1alpha2.ReasonPaused
}
