package nginxoperator

import (
	"cmp"
	"context"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

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
	pods, err := operand.Children(made.Object, made.Inputs)
	if err != nil {
		return out, err
	}
	entrance := pods
	if want.entrance != nil {
		in := want.entrance.Inputs
		in.Missing, in.Running = out.Inputs.Missing, out.Inputs.Running
		in.Image = out.Inputs.Image // all children have the label of the Pods' version
		if entrance, err = operand.Children(want.entrance.Object, in); err != nil {
			return out, err
		}
		if equality.Semantic.DeepEqual(operand.WithEntrance(pods, entrance), pods) {
			entrance = pods
		} else {
			out.Entrance, out.Revision = want.entrance.Object, following(out.Revision)
		}
	}
	running, err := r.reached(ctx, object, state, pods, entrance, want.running)
	out.Composed = operand.Compose(pods, entrance, running)
	return out, err
}

// reached returns the running ports, without the number to which the Ingress or HTTPRoute moves if the
// API server has no endpoints for it: the Service may have got the number a moment ago.
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

// following returns a record whose entrance follows the Pods.
func following(of *appsv1.ControllerRevision) *appsv1.ControllerRevision {
	out := of.DeepCopy()
	metav1.SetMetaDataLabel(&out.ObjectMeta, wellknown.LabelEntrance, wellknown.EntranceFollows)
	return out
}
