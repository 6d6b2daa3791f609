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
	"github.com/example/nginx-operator/internal/apply"
)

// reportUnreadable says in the status of an object that it cannot be decoded. Its children are left as they are: nobody knows what
// they should be. The patch is made, and its answer read, without the type that the object does not fit.
func (r *Reconciler) reportUnreadable(ctx context.Context, object *v1alpha2.NginxOperator, why string) error {
	conditions := object.DeepCopy().Status.Conditions
	for _, next := range stopped(v1alpha2.ReasonUnreadable, truncate(unreadableMessage(why)), "stopped by a failure, see Degraded") {
		next.ObservedGeneration = object.Generation
		meta.SetStatusCondition(&conditions, next)
	}
	if equality.Semantic.DeepEqual(conditions, object.Status.Conditions) && object.Status.ObservedGeneration == object.Generation {
		return nil
	}
	err := r.patchUnreadable(ctx, object, conditions)
	if apierrors.IsInvalid(err) {
		// A rule of the schema that cannot be evaluated, because it finds other types, keeps the API server from taking any write of
		// the object that does not correct it. An Event is what is left, and nothing is gained by trying again.
		r.Recorder.Eventf(object, nil, corev1.EventTypeWarning, v1alpha2.ReasonUnreadable, "Reconcile", "%s", unreadableMessage(why))
		log.FromContext(ctx).Error(err, "Failed to write the status of an object that cannot be read")
		return nil
	}
	if err != nil {
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("failed to write status: %w", err)
	}
	for _, change := range transitions(object.Status.Conditions, conditions) {
		log.FromContext(ctx).Info("Condition changed", "reason", change.reason, "message", change.message)
		r.Recorder.Eventf(object, nil, change.eventType, change.reason, "Reconcile", "%s", change.message)
	}
	return nil
}

// patchUnreadable makes the first of the patches that the API server takes.
func (r *Reconciler) patchUnreadable(ctx context.Context, object *v1alpha2.NginxOperator, conditions []metav1.Condition) error {
	patches, err := unreadablePatches(object, conditions)
	if err != nil {
		return err
	}
	for _, patch := range patches {
		target := &metav1.PartialObjectMetadata{}
		target.SetGroupVersionKind(v1alpha2.GroupVersion.WithKind("NginxOperator"))
		target.Namespace, target.Name = object.Namespace, object.Name
		err = r.Client.Status().Patch(ctx, target, client.RawPatch(types.JSONPatchType, patch), apply.FieldOwner,
			client.DisableReadYourWritesConsistency)
		if !apierrors.IsInvalid(err) {
			break
		}
	}
	return err
}

// unreadablePatches returns a patch that writes the conditions and leaves the rest of the status as it is, and one for where there is
// no status, or none that the API server takes: then they are all of it.
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

func unreadableMessage(why string) string {
	return "the stored object cannot be read, so nothing of it is applied: " + why +
		"; correct that field, or delete the object and create it again"
}
