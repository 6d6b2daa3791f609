package nginxoperator

import (
	"cmp"
	"context"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/live"
	"github.com/example/nginx-operator/internal/operand"
	"github.com/example/nginx-operator/internal/revision"
	"github.com/example/nginx-operator/internal/rollout"
)

// render returns the children of a decision for the live state.
func (r *Reconciler) render(
	ctx context.Context, object *v1alpha2.NginxOperator, state live.State, decided rollout.Decision,
) (revision.Rendering, error) {
	out := revision.Rendering{Pods: decided.Apply, Entrance: decided.Entrance, Missing: r.Missing}
	running, err := state.Running()
	if err != nil {
		return out, err
	}

	pods := sized(object, state, decided)
	if decided.Entrance == nil {
		out.Running, out.Children = running, slices.DeleteFunc(pods, operand.IsEntrance)
		return out, nil
	}

	entrance := pods
	if decided.Entrance != decided.Apply {
		entrance = operand.WithoutMissing(decided.Entrance.Children, out.Missing)
	}
	if out.Running, err = r.reached(ctx, object, state, pods, entrance, running); err != nil {
		return out, err
	}

	out.Composed = operand.Compose(pods, entrance, out.Running)
	return out, nil
}

// sized returns the children of the Pods of a decision with the size that the spec declares, as far
// as it is valid for the Pods: replicas, strategy, deadlines, autoscaler, and PodDisruptionBudget.
func sized(object *v1alpha2.NginxOperator, state live.State, decided rollout.Decision) []client.Object {
	proven := cmp.Or(decided.Good, decided.Apply)
	size := ptr.To(*object)
	scaler := operand.ChildOf[*autoscalingv2.HorizontalPodAutoscaler](proven.Children)
	switch {
	case object.Spec.Autoscaling == nil:
		scaler = nil
	case operand.CanScale(proven.Deployment(), &object.Spec):
		scaler = operand.DesiredAutoscaler(object, operand.Inputs{})
	default:
		size.Spec.Autoscaling = operand.AutoscalingOf(scaler) // as far as it is valid for the good Pods
	}

	var declared *appsv1.Deployment
	var budget client.Object
	known := decided.Apply.Children
	if decided.Declared != nil {
		declared, known = decided.Declared.Deployment(), slices.Concat(decided.Declared.Children, known)
	}
	if at := slices.IndexFunc(known, operand.IsBudget); at >= 0 {
		budget = known[at]
	}

	var out []client.Object
	for _, child := range decided.Apply.Children {
		switch child := child.(type) {
		case *appsv1.Deployment:
			deployment := child.DeepCopy()
			if decided.Apply != decided.Declared || size.Spec.Autoscaling != object.Spec.Autoscaling {
				deployment = operand.Sized(child, declared, size, state.Deployment())
			}
			if decided.Attempt != nil && decided.Apply == decided.Declared {
				operand.SetCareful(deployment)
			}

			out = append(out, deployment)
			out = append(out, operand.SizeOf(size, deployment, budget, scaler)...)
		case *autoscalingv2.HorizontalPodAutoscaler:
		default:
			if !operand.IsBudget(child) {
				out = append(out, child)
			}
		}
	}

	return out
}

// reached returns the running ports, without the number to which the Ingress or HTTPRoute moves
// while that has no endpoints: the Service may have got the number a moment ago.
func (r *Reconciler) reached(
	ctx context.Context, object *v1alpha2.NginxOperator, state live.State, pods, entrance []client.Object, running operand.Running,
) (operand.Running, error) {
	number, moves := operand.RouteMovesTo(pods, entrance, running)
	if !moves || object.Spec.Paused {
		return running, nil
	}

	reached, err := r.bridges(state).HasEndpoints(ctx, object, number)
	if err == nil && !reached {
		running = running.WithoutEndpoints(number)
	}
	return running, err
}
