package nginxoperator

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/failure"
	"github.com/example/nginx-operator/internal/status"
)

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
		log.FromContext(ctx).Error(err, "Failed to write the status of an object that cannot be read")
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
	return "the stored object cannot be read, so nothing of it is applied: " + why +
		"; correct that field, or delete the object and create it again"
}
