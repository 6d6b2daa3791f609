package nginxoperator

import (
	"context"
	"errors"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/failure"
	"github.com/example/nginx-operator/internal/live"
	"github.com/example/nginx-operator/internal/revision"
	"github.com/example/nginx-operator/internal/rollout"
	"github.com/example/nginx-operator/internal/status"
	"github.com/example/nginx-operator/pkg/apply"
)

// Preview is the result that a reconcile of an object would have.
type Preview struct {
	// Blockers are the reasons why the spec is not applied, as in status.blockedBy.
	Blockers []v1alpha2.Blocker
	// Failures has a failure for each child that the API server refuses. A reconcile stops at the
	// first refusal of a child that Pods depend on.
	Failures []v1alpha2.Blocker
	// Children are the children that would be applied, with the patches of the spec.
	Children []client.Object
	// Missing has a failure for each declared child whose kind is not installed.
	Missing []v1alpha2.Blocker
}

// Preview makes the writes of a reconcile, but not the status. It ignores spec.paused, the fleet
// rollout, and bridges of renamed ports, and has the entrance that follows the Pods. The client of
// the Applier must make dry runs. The Reconciler needs only Client, Applier, ConfigMaps, Secrets,
// Missing, and Release, and must not have Fleet. Preview calls refused after the first refusal, and
// still writes the other children, so that the API server validates all of them.
func (r *Reconciler) Preview(ctx context.Context, object *v1alpha2.NginxOperator, refused func()) (Preview, error) {
	state, err := live.Read(ctx, r.Client, object, r.Missing)
	if err != nil {
		return Preview{}, err
	}

	declared, found, err := r.rollouts(state).Declare(ctx, object)
	if err != nil {
		return Preview{}, err
	}
	if object, err = r.rollouts(state).Recognize(ctx, object, declared); err != nil {
		return Preview{}, err
	}

	if declared != nil {
		if err := r.rollouts(state).Mark(object, declared); err != nil {
			return Preview{}, err
		}
	}

	decided, err := r.rollouts(state).Decide(ctx, object, declared, found.Invalid)
	out := Preview{Blockers: failure.Blockers(decided.Blockers)}
	if err != nil || decided.Apply == nil {
		return out, err
	}

	good := decided.Good
	if decided.Apply == decided.Declared {
		decided.Entrance, decided.Good = decided.Apply, nil
	}

	rendered, state, err := r.renderAdopted(ctx, object, state, decided)
	if err != nil {
		out.Failures, err = refusalOf(err, object)
		return out, err
	}

	out.Children, out.Missing = rendered.Children, failure.Blockers(status.MissingFailures(&rendered))
	ordered, independent := inOrder(rendered)
	written := slices.Concat(ordered, independent)
	needed := slices.Clone(written)
	if good != nil {
		needed = append(needed, mountedBy(good)...)
	}

	out.Failures, err = r.tryAll(ctx, object, state, rendered, written, refused)
	if err == nil && len(out.Failures) == 0 {
		var failed []apply.Failure
		failed, _, err = r.deleteStale(ctx, object, state, rendered, needed)
		for _, one := range failed {
			err = errors.Join(err, one.Err)
		}
	}

	return out, err
}

// maxAdoptions is the limit of renderings for a preview. Another one follows the adoption of the
// Deployment, because the names of ConfigMaps depend on it.
const maxAdoptions = 3

// renderAdopted returns the children of a declaration for the state after the adoption of orphans,
// and this state. tryAll reports the names that are taken.
func (r *Reconciler) renderAdopted(
	ctx context.Context, object *v1alpha2.NginxOperator, state live.State, of rollout.Decision,
) (revision.Rendering, live.State, error) {
	for i := 0; ; i++ {
		rendered, err := r.render(ctx, object, state, of)
		if err != nil || i == maxAdoptions {
			return rendered, state, err
		}

		ordered, independent := inOrder(rendered)
		adopted, err := r.Applier.Adopt(ctx, object, state, rendered.Pods.Content, ordered, independent)
		switch {
		case apply.IsNotOurs(err) != nil:
			return rendered, state, nil //nolint:nilerr // tryAll reports it
		case err != nil || len(adopted) == 0:
			return rendered, state, err
		}

		state = state.With(adopted...)
		if of.Apply == of.Declared { // its names depend on the Deployment
			again, err := r.rollouts(state).RenderAgain(object, of.Declared, "")
			if err != nil {
				return rendered, state, err
			}
			of.Apply, of.Declared, of.Entrance = again, again, again
		}
	}
}

// tryAll writes each child, even if the API server refuses others, and returns the refusals.
func (r *Reconciler) tryAll(
	ctx context.Context, object *v1alpha2.NginxOperator, state live.State, of revision.Rendering, children []client.Object, refused func(),
) ([]v1alpha2.Blocker, error) {
	var out []v1alpha2.Blocker
	content := of.Pods.Content
	for _, child := range children {
		_, err := r.Applier.Apply(ctx, object, state, content, child)
		found, err := refusalOf(err, object)
		if err != nil {
			return nil, err
		}
		if len(out) == 0 && len(found) > 0 {
			refused()
		}

		out = append(out, found...)
	}

	return out, nil
}

// refusalOf returns a refusal of the API server as a blocker, and any other error unchanged.
func refusalOf(err error, object *v1alpha2.NginxOperator) ([]v1alpha2.Blocker, error) {
	found := status.WriteFailure(err, &object.Spec)
	if found == nil || found.Reason == v1alpha2.ReasonAPIError {
		return nil, err
	}
	return failure.Blockers([]failure.Failure{*found}), nil
}

// Declared returns the children of the current spec, or the reasons why the spec cannot be applied.
// The Reconciler needs the same fields as for Preview, without the Applier.
func (r *Reconciler) Declared(ctx context.Context, object *v1alpha2.NginxOperator) ([]client.Object, []v1alpha2.Blocker, error) {
	state, err := live.Read(ctx, r.Client, object, r.Missing)
	if err != nil {
		return nil, nil, err
	}

	declared, found, err := r.rollouts(state).Declare(ctx, object)
	if err != nil || declared == nil {
		return nil, failure.Blockers(found.Invalid), err
	}

	rendered, err := r.render(ctx, object, state, rollout.Decision{Declared: declared, Apply: declared, Entrance: declared})
	return rendered.Children, nil, err
}
