package nginxoperator

import (
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/cached"
	"github.com/example/nginx-operator/pkg/apply"
)

// rememberStatus remembers the status that this process writes to an object.
func (r *Reconciler) rememberStatus(object *v1alpha2.NginxOperator) {
	hash := cached.StatusHash(object)
	r.Applier.Memory.Update(object, func(known *apply.Remembered) { known.StatusHash = hash })
}

// changedByOthers passes a status that differs from the last one that this process wrote, so that
// the operator writes it again. If this process has not written to an object, it passes every
// change.
func (r *Reconciler) changedByOthers() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc:  func(event.CreateEvent) bool { return false },
		DeleteFunc:  func(event.DeleteEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			after := e.ObjectNew.(*v1alpha2.NginxOperator)
			if !cached.StatusesDiffer(e.ObjectOld.(*v1alpha2.NginxOperator), after) {
				return false
			}
			written, key := "", client.ObjectKeyFromObject(after)
			r.Applier.Memory.View(key, after.UID, func(known *apply.Remembered) { written = known.StatusHash })
			return written != cached.StatusHash(after)
		},
	}
}

// rememberChange remembers when the generation of an object was first seen, if its status does not
// have the generation yet.
func (r *Reconciler) rememberChange(object *v1alpha2.NginxOperator) {
	if object.Status.ObservedGeneration == object.Generation {
		return
	}
	r.Applier.Memory.Update(object, func(known *apply.Remembered) {
		if known.Generation != object.Generation {
			known.Generation, known.Seen = object.Generation, time.Now()
		}
	})
}

// measureChange measures the time until an object is Ready, once for each change.
func (r *Reconciler) measureChange(object *v1alpha2.NginxOperator) {
	r.Applier.Memory.Update(object, func(known *apply.Remembered) {
		if known.Generation != 0 {
			r.Metrics.Ready(time.Since(known.Seen))
			known.Generation = 0
		}
	})
}
