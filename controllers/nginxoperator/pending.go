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
	"github.com/example/nginx-operator/internal/revision"
)

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
		writes = append(writes, fmt.Sprintf("%s %q", live.KindOf(child), child.GetName()))
	}
	for _, child := range stale {
		writes = append(writes, fmt.Sprintf("the deletion of %s %q", live.KindOf(child), child.GetName()))
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
