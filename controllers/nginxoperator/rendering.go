package nginxoperator

import (
	"cmp"
	"context"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/live"
	"github.com/example/nginx-operator/internal/operand"
	"github.com/example/nginx-operator/internal/record"
	"github.com/example/nginx-operator/internal/rollout"
	"github.com/example/nginx-operator/internal/wellknown"
)

// wanted has the declarations to render for the live state.
type wanted struct {
	// of is the declaration of the Pods. entrance is that of the entrance, or nil if it is the same.
	of, entrance *record.Declaration
	// good is the declaration of the good Pods if those of the other declaration have not proven
	// themselves, or nil.
	good    *record.Declaration
	running operand.Running
	// suffix is that of the ConfigMaps, or "" for the suffix of the live Deployment.
	suffix string
}

// wantedOf returns the declarations of a decision. of is that of the Pods.
func wantedOf(decided rollout.Decision, of *record.Declaration, running operand.Running) wanted {
	out := wanted{of: of, entrance: decided.Entrance, running: running}
	if decided.Unproven {
		out.good = decided.Good
	}
	return out
}

// wantedBy is wantedOf for the current running ports. The Ingress or HTTPRoute moves to another number only when
// the API server has endpoints for it: the Service may have got the number a moment ago.
func (r *Reconciler) wantedBy(
	ctx context.Context, object *v1alpha2.NginxOperator, state live.State, decided rollout.Decision,
) (wanted, error) {
	running, err := state.Running()
	out := wantedOf(decided, decided.Apply, running)
	if err != nil {
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
	if want.good != nil {
		made.Object = made.Object.DeepCopy()
		made.Object.Spec.Autoscaling = want.good.Object.Spec.Autoscaling // as far as it is valid for the good Pods
	}
	if state.EntranceFollows(made.Revision.Name) {
		made.Revision = following(made.Revision)
	}
	out = record.NewRendering(&made)
	if err = r.store(state).Carry(ctx, object, &out); err != nil {
		return out, err
	}
	if out.Children, err = operand.Children(made.Object, made.Inputs); err != nil {
		return out, err
	}
	return withEntrance(out, want.entrance)
}

// withEntrance returns a rendering with the entrance of another declaration, unless that is nil or has
// the same entrance.
func withEntrance(of record.Rendering, entrance *record.Declaration) (record.Rendering, error) {
	if entrance == nil {
		return of, nil
	}
	in := entrance.Inputs
	in.Missing, in.Deployment, in.Running = of.Inputs.Missing, of.Inputs.Deployment, of.Inputs.Running
	in.Image = of.Inputs.Image // all children have the label of the Pods' version
	children, err := operand.Children(entrance.Object, in)
	if err != nil || equality.Semantic.DeepEqual(operand.WithEntrance(of.Children, children), of.Children) {
		return of, err
	}

	of.Entrance, in.Pods, of.Inputs.Pods = entrance.Object, &of.Object.Spec, &of.Object.Spec
	of.Revision = following(of.Revision)
	if of.Inputs.MovesRoute = operand.MovesRoute(&entrance.Object.Spec, &of.Object.Spec); of.Inputs.MovesRoute {
		if of.Children, err = operand.Children(of.Object, of.Inputs); err != nil {
			return of, err
		}
	}
	children, err = operand.Children(entrance.Object, in)
	of.Children = operand.WithEntrance(of.Children, children)
	return of, err
}

// following returns a record whose entrance follows the Pods.
func following(of *appsv1.ControllerRevision) *appsv1.ControllerRevision {
	out := of.DeepCopy()
	metav1.SetMetaDataLabel(&out.ObjectMeta, wellknown.LabelEntrance, wellknown.EntranceFollows)
	return out
}
