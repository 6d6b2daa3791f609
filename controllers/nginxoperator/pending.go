package nginxoperator

import (
	"context"
	"fmt"
	"slices"

	"github.com/example/nginx-operator/internal/defaults"
	"github.com/example/nginx-operator/internal/operand"
	"github.com/example/nginx-operator/internal/record"
)

// pending describes the writes that apply would make.
func (r *Reconciler) pending(ctx context.Context, of record.Rendering) ([]string, error) {
	object, in, children := of.Object, of.Inputs, of.Children
	differ, err := r.Applier.Pending(ctx, object, of.Contents(), children...)
	if err != nil {
		return nil, err
	}
	stale, err := r.reader().Stale(ctx, object, children)
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
		out = append(out, fmt.Sprintf("%s %q", child.GetObjectKind().GroupVersionKind().Kind, child.GetName()))
	}
	for _, child := range stale {
		gvk, err := r.Client.GroupVersionKindFor(child)
		if err != nil {
			return nil, fmt.Errorf("failed to find kind of %s: %w", child.GetName(), err)
		}
		out = append(out, fmt.Sprintf("the deletion of %s %q", gvk.Kind, child.GetName()))
	}
	return out, nil
}
