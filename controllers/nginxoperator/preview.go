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
	// Missing are the declared children that are left out because the cluster does not have their kinds.
	Missing []v1alpha2.Blocker
}

// Preview does what a reconcile of the object does up to the status, without a look at spec.paused, the turn of the object in the rollout
// of a release, and the bridge of a port's new name. It writes with the Applier, whose client is to make dry runs of that. Of the
// Reconciler it needs Client, Applier, ConfigMaps, Secrets, Optional, Image, ExporterImage and IPv6. Errors are those of reading; what the
// API server refuses of the children is Failure.
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
	out.Missing = toBlockers(missingFailures(result.applied))
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

// Record is what a ControllerRevision of an instance keeps, as far as others want it.
type Record struct {
	// Spec is the declaration.
	Spec v1alpha2.NginxOperatorSpec
	// Image and ExporterImage are the container images that its Pods got, the latter "" where they have no exporter.
	Image, ExporterImage string
}

// Recorded returns what a ControllerRevision keeps. Others than the operator may have written it, so it is bounded and validated.
func Recorded(of *appsv1.ControllerRevision) (Record, error) {
	kept, err := decodeRevision(of.Data.Raw)
	return Record{kept.Spec, kept.Image, kept.Exporter}, err
}

func toBlockers(found []failure) []v1alpha2.Blocker {
	var out []v1alpha2.Blocker
	for _, one := range found {
		out = append(out, v1alpha2.Blocker{Reason: one.reason, Message: truncate(one.message)})
	}
	return out
}
