package nginxoperator

import (
	"context"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/operand"
	"github.com/example/nginx-operator/internal/requeue"
	"github.com/example/nginx-operator/internal/revision"
	"github.com/example/nginx-operator/pkg/apply"
)

// A client that may delete and create ConfigMaps can replace an immutable one by a forgery with the
// same name, labels, and owner. The operator compares the whole child when it first sees its UID.
// After that the data cannot change.
//
// A kubelet retains an immutable ConfigMap while a Pod of its node mounts it, and would mount the
// forgery in new Pods. So all ConfigMaps get new names with a random suffix, and the Deployment
// replaces all Pods in a normal rollout. An annotation of the Deployment has the suffix, and is
// written together with the names. After a crash before this write, the forgery is found again.

// replace applies a declaration despite a forged child, and then deletes that child. It returns the
// forged child as the error, which the status reports until the next reconcile.
func (r *Reconciler) replace(
	ctx context.Context, object *v1alpha2.NginxOperator, done results, rendered revision.Rendering, forged *apply.Forged,
) (results, error) {
	forgeries := []*apply.Forged{forged}
	if decided := done.Decision; decided.Apply == decided.Declared {
		again, err := r.rollouts(done.live).RenderAgain(object, decided.Declared, operand.NewSuffix())
		if err == nil {
			if decided.Entrance == decided.Declared {
				decided.Entrance = again
			}
			decided.Apply, decided.Declared = again, again
			rendered, err = r.render(ctx, object, done.live, decided)
		}

		if err == nil {
			done, err = r.change(ctx, object, done, rendered)
		}
		if other := apply.IsForged(err); other != nil {
			forgeries, err = append(forgeries, other), nil
		}
		if err != nil || done.hold {
			return done, err
		}
	}

	if err := r.Applier.Confirm(ctx, object); err != nil {
		return done, err
	}

	for _, forgery := range forgeries {
		if err := r.Applier.Delete(ctx, forgery.Child); err != nil {
			return done, err
		}
		done.live = done.live.Without(forgery.Child)
	}

	done.Replaced, done.again = true, requeue.Soon
	return done, forged
}
