package nginxoperator

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
)

// Preview is what a reconcile of an object would come to.
type Preview struct {
	// Blockers are why the children are not made of what the object declares, in the words of status.blockedBy; none where they are.
	Blockers []v1alpha2.Blocker
	// Failure is why a child could not be written, nil where all could.
	Failure *v1alpha2.Blocker
	// Children are those of the declaration that would be applied, with its patches. There are none where the object is blocked and
	// nothing was applied before.
	Children []client.Object
}

// Preview does what a reconcile of the object does up to the status, without a look at spec.paused, the turn of the object in the rollout
// of a release, and the bridge of a port's new name. It writes with the Applier, whose client is to make dry runs of that. Of the
// Reconciler it needs Client, Applier, ConfigMaps, Secrets, HTTPRoutes, Image and IPv6. Errors are those of reading; what the API server
// refuses of the children is Failure.
func (r *Reconciler) Preview(ctx context.Context, object *v1alpha2.NginxOperator) (Preview, error) {
	declared, result, err := r.declared(ctx, object)
	if err != nil {
		return Preview{}, err
	}
	if len(result.blockers) > 0 {
		result.applied, err = r.lastApplied(ctx, object)
	} else {
		err = r.unlessFailed(ctx, declared, &result)
	}
	out := Preview{Blockers: toBlockers(result.blockers)}
	if err != nil || result.applied == nil {
		return out, err
	}
	if out.Children, err = r.childrenOf(ctx, object, result.applied); err == nil {
		_, err = r.apply(ctx, result.applied, out.Children)
	}
	failed := applyFailure(err, &result.applied.object.Spec)
	if failed == nil || failed.reason == v1alpha2.ReasonAPIError {
		return out, err
	}
	out.Failure = &toBlockers([]failure{*failed})[0]
	return out, nil
}

// Declared returns the children that an object declares, whether they could be applied or not, or what blocks it. It needs what Preview
// needs but the Applier, and writes nothing.
func (r *Reconciler) Declared(ctx context.Context, object *v1alpha2.NginxOperator) ([]client.Object, []v1alpha2.Blocker, error) {
	declared, result, err := r.declared(ctx, object)
	if err != nil || declared == nil {
		return nil, toBlockers(result.blockers), err
	}
	children, err := r.childrenOf(ctx, object, declared)
	return children, nil, err
}

// Recorded returns the declaration that a ControllerRevision of an instance keeps, and the container image that its Pods got. Others may
// have written it, so it is bounded and validated.
func Recorded(of *appsv1.ControllerRevision) (spec v1alpha2.NginxOperatorSpec, image string, err error) {
	kept, err := decodeRevision(of.Data.Raw)
	return kept.Spec, kept.Image, err
}

func toBlockers(found []failure) []v1alpha2.Blocker {
	var out []v1alpha2.Blocker
	for _, one := range found {
		out = append(out, v1alpha2.Blocker{Reason: one.reason, Message: truncate(one.message)})
	}
	return out
}
