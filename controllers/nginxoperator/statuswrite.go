package nginxoperator

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/cached"
	"github.com/example/nginx-operator/internal/failure"
	"github.com/example/nginx-operator/internal/live"
	"github.com/example/nginx-operator/internal/revision"
	"github.com/example/nginx-operator/internal/rollout"
	"github.com/example/nginx-operator/internal/status"
	"github.com/example/nginx-operator/pkg/apply"
	"github.com/example/nginx-operator/pkg/denied"
)

// storeInEffect stores the children in effect, and writes their hash to the status. It returns
// false if another client has removed the last declaration of the Deployment everywhere. The change
// then continues, and cannot be rolled back.
func (r *Reconciler) storeInEffect(
	ctx context.Context, object *v1alpha2.NginxOperator, state live.State, request rollout.StoreRequest, spec *revision.Declaration,
) (bool, error) {
	child, reference, err := revision.Store{Live: state, Applier: r.Applier}.InEffect(ctx, object, request.Pods, spec)
	if child == nil || err != nil {
		return false, err
	}
	if _, err := r.Applier.Apply(ctx, object, state, nil, child); err != nil {
		return false, err
	}

	reference.HasEntrance = request.HasEntrance
	updated := *object.Status.DeepCopy()
	updated.StoredRevision = reference
	_, err = r.writeStatus(ctx, object, updated)
	return true, err
}

// writeStatus writes a changed status with one patch, and then reports its transitions. It returns
// the delay of a deferred write, or 0. It returns a conflict if the status was computed from an old
// view of the object: the patch would remove a failed revision. An object that never changed has no
// old view with another result.
func (r *Reconciler) writeStatus(
	ctx context.Context, object *v1alpha2.NginxOperator, updated v1alpha2.NginxOperatorStatus,
) (time.Duration, error) {
	if delay := status.WriteDelay(&object.Status, &updated, time.Now()); delay != 0 {
		return max(delay, 0), nil
	}

	if object.Generation > 1 {
		if err := r.Applier.Confirm(ctx, object); err != nil {
			return 0, err
		}
	}

	patch, err := statusPatch(object, operation{"add", "/status", updated})
	if err != nil {
		return 0, err
	}

	ctx, cancel := uncanceled(ctx)
	defer cancel()
	written := object.DeepCopy()
	written.Status = updated
	r.rememberStatus(written)
	err = r.Client.Status().Patch(ctx, written, client.RawPatch(types.JSONPatchType, patch), r.Applier.FieldOwner)
	if apierrors.IsNotFound(err) && !denied.Is(err) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("failed to write status: %w", err)
	}

	r.rememberStatus(written) // the API server may prune or default a field
	r.reportTransitions(ctx, object, updated.Conditions)
	if meta.IsStatusConditionPresentAndEqual(updated.Conditions, v1alpha2.ConditionReady, metav1.ConditionTrue) {
		r.measureChange(object)
	}

	return 0, nil
}

// uncanceled returns a context for a write of the status, with the values and the deadline of the
// context of a reconcile. If the process stops meanwhile, the result is still awaited: the next
// leader cannot tell that a written transition has not been reported.
func uncanceled(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline, bounded := ctx.Deadline()
	ctx = context.WithoutCancel(ctx)
	if !bounded {
		return ctx, func() {}
	}
	return context.WithDeadline(ctx, deadline)
}

// reportTransitions reports the changes of the conditions of an object by Events and in the log.
func (r *Reconciler) reportTransitions(ctx context.Context, object *v1alpha2.NginxOperator, after []metav1.Condition) {
	for _, change := range status.Transitions(&object.Status, after) {
		if change.Reason == v1alpha2.ReasonNamespaceTerminating {
			continue // such a namespace accepts no Events
		}
		log.FromContext(ctx).Info("Condition changed", "reason", change.Reason, "message", change.Message)
		r.Recorder.Eventf(object, nil, change.EventType, change.Reason, "Reconcile", "%s", change.Message)
	}
}

// operation is an operation of a JSON patch (RFC 6902).
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// statusPatch returns a JSON patch of the status that fails for a later object with the same name.
// The API server does not compare the UID of a merge patch in a write to the status.
func statusPatch(object *v1alpha2.NginxOperator, operations ...operation) ([]byte, error) {
	patch, err := json.Marshal(append([]operation{{"test", "/metadata/uid", object.UID}}, operations...))
	if err != nil {
		return nil, fmt.Errorf("failed to encode status: %w", err)
	}
	return patch, nil
}

// reportUnreadable reports in the status that an object cannot be decoded. Its children stay as
// they are. The patch and its response do not use the Go type, because the object does not fit it.
func (r *Reconciler) reportUnreadable(ctx context.Context, object *v1alpha2.NginxOperator, why string) error {
	conditions := object.DeepCopy().Status.Conditions
	message := failure.Truncate(unreadableMessage(why))
	for _, next := range status.Stopped(v1alpha2.ReasonUnreadable, message, "stopped by a failure, see Degraded") {
		next.ObservedGeneration = object.Generation
		meta.SetStatusCondition(&conditions, next)
	}
	if equality.Semantic.DeepEqual(conditions, object.Status.Conditions) && object.Status.ObservedGeneration == object.Generation {
		return nil
	}

	err := r.patchUnreadable(ctx, object, conditions)
	switch {
	case apierrors.IsInvalid(err):
		// A rule of the schema finds an unexpected type, so the API server refuses every write that
		// does not correct it. Send an Event instead. A retry does not help.
		r.Recorder.Eventf(object, nil, corev1.EventTypeWarning, v1alpha2.ReasonUnreadable, "Reconcile", "%s", unreadableMessage(why))
		log.FromContext(ctx).Error(err, "Failed to write the status of an object that cannot be decoded")
	case apierrors.IsNotFound(err):
	case err != nil:
		return fmt.Errorf("failed to write status: %w", err)
	default:
		r.reportTransitions(ctx, object, conditions)
	}

	return nil
}

// patchUnreadable tries patches until the API server accepts one.
func (r *Reconciler) patchUnreadable(ctx context.Context, object *v1alpha2.NginxOperator, conditions []metav1.Condition) error {
	patches, err := unreadablePatches(object, conditions)
	if err != nil {
		return err
	}

	ctx, cancel := uncanceled(ctx)
	defer cancel()
	for _, patch := range patches {
		target := &metav1.PartialObjectMetadata{}
		target.SetGroupVersionKind(v1alpha2.GroupVersion.WithKind("NginxOperator"))
		target.Namespace, target.Name = object.Namespace, object.Name
		err = r.Client.Status().Patch(ctx, target, client.RawPatch(types.JSONPatchType, patch), r.Applier.FieldOwner,
			client.DisableReadYourWritesConsistency)
		if !apierrors.IsInvalid(err) {
			break
		}
	}

	return err
}

// unreadablePatches returns a patch that writes only the conditions, and one that replaces the
// status. The second is for an object without a status, or with one that the API server refuses.
func unreadablePatches(object *v1alpha2.NginxOperator, conditions []metav1.Condition) ([][]byte, error) {
	instead, err := statusPatch(object,
		operation{"add", "/status", map[string]any{"observedGeneration": object.Generation, "conditions": conditions}})
	if err != nil || equality.Semantic.DeepEqual(object.Status, v1alpha2.NginxOperatorStatus{}) { // nor can the status be read
		return [][]byte{instead}, err
	}

	beside, err := statusPatch(object,
		operation{"add", "/status/observedGeneration", object.Generation}, operation{"add", "/status/conditions", conditions})
	return [][]byte{beside, instead}, err
}

// unreadableMessage returns the message for an object that cannot be decoded.
func unreadableMessage(why string) string {
	return "the stored object cannot be decoded, so no change is applied: " + why +
		". Correct this field; deleting the object deletes the instance"
}

// rememberStatus remembers the status that this process writes to an object.
func (r *Reconciler) rememberStatus(object *v1alpha2.NginxOperator) {
	hash := cached.StatusHash(object)
	r.Applier.Memory.Update(object, func(known *apply.Remembered) { known.StatusHash = hash })
}

// changedByOthers passes a status that differs from the last one that this process wrote, if any.
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

// rememberChange remembers when a generation was first seen that the status does not have yet.
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
