package nginxoperator

import (
	"cmp"
	"context"
	"strings"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/live"
	"github.com/example/nginx-operator/internal/operand"
	"github.com/example/nginx-operator/internal/record"
	"github.com/example/nginx-operator/internal/rollout"
)

// wanted is what is rendered for the live state.
type wanted struct {
	// of is the declaration of the Pods. entrance is that of the entrance, or nil if it is the same.
	of, entrance *record.Declaration
	running      operand.Running
	// suffix is that of the ConfigMaps, or "" for the suffix of the live Deployment.
	suffix string
}

// wantedBy returns what a decision renders. The Ingress or HTTPRoute moves to another number only when
// the API server has endpoints for it: the Service may have got the number a moment ago.
func (r *Reconciler) wantedBy(
	ctx context.Context, object *v1alpha2.NginxOperator, state live.State, decided rollout.Decision,
) (wanted, error) {
	out := wanted{of: decided.Apply, entrance: decided.Entrance}
	var err error
	if out.running, err = state.Running(); err != nil {
		return out, err
	}
	spec, in := &decided.Apply.Object.Spec, operand.Inputs{Running: out.running}
	if decided.Entrance != nil {
		spec, in.Pods = &decided.Entrance.Object.Spec, spec
	}
	number, moves := operand.RouteMovesTo(spec, in)
	if !moves || object.Spec.Paused {
		return out, nil
	}
	reached, err := r.bridges(state).HasEndpoints(ctx, object, number)
	if err == nil && !reached {
		out.running = out.running.WithoutEndpoints(number)
	}
	return out, err
}

// renderChildren returns the children for the live state.
func (r *Reconciler) renderChildren(
	ctx context.Context, object *v1alpha2.NginxOperator, state live.State, want wanted,
) (out record.Rendering, err error) {
	made := *want.of
	out = record.Rendering{Declaration: &made}
	made.Inputs.Attempt = made.Inputs.Attempt || record.HasFailed(&object.Status, made.Revision.Name)
	made.Inputs.Missing, made.Inputs.Record = r.missingKinds(), strings.TrimPrefix(made.Revision.Name, record.Name(object, ""))
	made.Inputs.Deployment, made.Inputs.Running = state.Deployment(), want.running
	made.Inputs.Suffix = cmp.Or(want.suffix, operand.SuffixOf(made.Inputs.Deployment))
	out = record.NewRendering(&made)
	if err = r.store(state).Carry(ctx, object, &out); err != nil {
		return out, err
	}
	if want.entrance == nil {
		out.Children, err = operand.Children(made.Object, made.Inputs)
		return out, err
	}

	made.Object = made.Object.DeepCopy()
	made.Object.Spec.Autoscaling = want.entrance.Object.Spec.Autoscaling // as far as it is valid for the good Pods
	out.Entrance, made.Inputs.MovesRoute = want.entrance.Object, operand.MovesRoute(&want.entrance.Object.Spec, &made.Object.Spec)
	if out.Children, err = operand.Children(made.Object, made.Inputs); err != nil {
		return out, err
	}
	made.Inputs.Pods = &made.Object.Spec
	in := want.entrance.Inputs
	in.Missing, in.Deployment, in.Running, in.Pods = made.Inputs.Missing, made.Inputs.Deployment, made.Inputs.Running, made.Inputs.Pods
	in.Image = made.Inputs.Image // all children have the label of the Pods' version
	entrance, err := operand.Children(want.entrance.Object, in)
	out.Children = operand.WithEntrance(out.Children, entrance)
	return out, err
}
