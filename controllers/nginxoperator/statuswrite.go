package nginxoperator

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/live"
	"github.com/example/nginx-operator/internal/revision"
	"github.com/example/nginx-operator/internal/rollout"
	"github.com/example/nginx-operator/internal/status"
	"github.com/example/nginx-operator/pkg/denied"
)

// storeInEffect stores the children in effect, and writes their hash to the status. Nothing else is
// written before the next reconcile. It returns false if another client has removed the last
// declaration of the Deployment everywhere. The change then continues, and cannot be rolled back.
func (r *Reconciler) storeInEffect(
	ctx context.Context, object *v1alpha2.NginxOperator, state live.State, request rollout.StoreRequest,
) (bool, error) {
	child, reference, err := revision.Store{Live: state, Applier: r.Applier}.InEffect(ctx, object, request.Pods)
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

// deleteStored deletes the ControllerRevision of an earlier status, which no status refers to any
// more.
func (r *Reconciler) deleteStored(ctx context.Context, object *v1alpha2.NginxOperator, state live.State) error {
	for _, child := range state.Owned("ControllerRevision") {
		if stored := object.Status.StoredRevision; stored != nil && stored.Name == child.GetName() {
			return r.Applier.Delete(ctx, child.DeepCopyObject().(client.Object))
		}
	}
	return nil
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

// reportTransitions reports the changes of the conditions since the status of an object, by Events
// and in the log.
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
