package nginxoperator

import (
	"context"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/live"
	"github.com/example/nginx-operator/internal/operand"
	"github.com/example/nginx-operator/internal/requeue"
	"github.com/example/nginx-operator/internal/revision"
	"github.com/example/nginx-operator/internal/rollout"
	"github.com/example/nginx-operator/pkg/apply"
)

// A client that may delete and create ConfigMaps can replace an immutable one by another with the
// same name, labels, and owner, but other data. The operator reads and compares the whole child
// when it first sees its UID. After that the data cannot change.
//
// A forged ConfigMap cannot be replaced under its name. A kubelet retains an immutable ConfigMap
// while a Pod of its node mounts it, and would mount the forgery in new Pods. So all ConfigMaps get
// new names with a random suffix, and the Deployment replaces all Pods in a normal rollout. An
// annotation of the Deployment has the suffix, and is written together with the names in the Pod
// template. After a crash before this write, the forgery is found again. After a crash following
// it, the rollout continues.

// replace applies a declaration despite a forged child, and then deletes that child. It returns the
// forged child as the error, which the status reports until the next reconcile.
func (r *Reconciler) replace(
	ctx context.Context, object *v1alpha2.NginxOperator, state live.State, applied revision.Rendering, forged *apply.Forged,
	decided rollout.Decision,
) (out writing, err error) {
	out.Applied, out.live = &applied, state
	found := []*apply.Forged{forged}
	if decided.Apply == decided.Declared {
		again, err := r.rollouts(state).RenderAgain(object, decided.Declared, operand.NewSuffix())
		if err == nil {
			if decided.Entrance == decided.Declared {
				decided.Entrance = again
			}
			decided.Apply, decided.Declared = again, again
			applied, err = r.render(ctx, object, state, decided)
		}
		if err == nil {
			out, err = r.change(ctx, object, state, applied, decided)
		}
		if other := apply.IsForged(err); other != nil {
			found, err = append(found, other), nil
		}
		if err != nil || out.hold {
			return out, err
		}
	}
	if err := r.Applier.Confirm(ctx, object); err != nil {
		return out, err
	}
	for _, one := range found {
		if err := r.Applier.Delete(ctx, one.Child); err != nil {
			return out, err
		}
		out.live = out.live.Without(one.Child)
	}
	out.Replaced, out.again = true, requeue.Soon
	return out, forged
}
