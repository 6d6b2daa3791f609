package apply

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// An orphan is a child that has lost its owner reference: a backup tool restored it without one, or
// its owner was deleted with --cascade=orphan. Its labels, its record with the kind and name of the
// owner, its selector, and its content show that it is a child. An object that lacks one of them is
// foreign, and is never changed. See docs/adr/0054-orphans-are-adopted.md.

// refuse returns *NotOurs for a live object without the owner's reference, unless the object is an
// orphan of an owner with this kind and name. Other errors are errors of the content.
func (a *Applier) refuse(
	ctx context.Context, owner client.Object, content Content, gvk schema.GroupVersionKind, child, live client.Object,
) error {
	refusal := notOurs(gvk, child, live)
	if refusal.Controller != "" || !a.hasLabels(live, owner.GetName()) {
		return refusal
	}
	switch {
	case !a.isRecorded(child, live):
		refusal.Why = fmt.Sprintf("its annotation %s does not name this %s", a.Annotation, refusal.OwnerKind)
		return refusal
	case !sameSelector(child, live):
		refusal.Why = "its selector differs"
		return refusal
	}
	switch err := verify(ctx, content, gvk, child, live); {
	case IsForged(err) != nil:
		refusal.Why = "its content differs"
		return refusal
	case err != nil:
		return err
	case live.GetDeletionTimestamp() != nil:
		refusal.Predecessor = true
		return refusal
	case a.spend(owner, live.GetUID()) > 0:
		refusal.Why = "another client keeps removing its owner reference"
		return refusal
	}
	return nil
}

// isRecorded reports whether the record of a live object is that of a child with this name, of an
// owner with this kind and name. A restored object can be in another namespace than before.
func (a *Applier) isRecorded(child, live client.Object) bool {
	record := emptyOf(live)
	if err := json.Unmarshal(sanitizeRecord(live, a.recordOf(live)), record); err != nil {
		return false
	}
	before, now := metav1.GetControllerOf(record), metav1.GetControllerOf(child)
	return before != nil && sameOwner(before, now) && record.GetName() == child.GetName()
}

// sameSelector reports whether a live object has the selector of the declaration. Both have none if
// the kind has none.
func sameSelector(child, live client.Object) bool {
	declared, err1 := runtime.DefaultUnstructuredConverter.ToUnstructured(child)
	stored, err2 := runtime.DefaultUnstructuredConverter.ToUnstructured(live)
	if err1 != nil || err2 != nil {
		return false
	}
	for _, path := range atomicFields {
		is, _, _ := unstructured.NestedFieldNoCopy(declared, path...)
		was, _, _ := unstructured.NestedFieldNoCopy(stored, path...)
		if !reflect.DeepEqual(is, was) {
			return false
		}
	}
	return true
}

// adopt makes the owner the controller of an orphan.
func (a *Applier) adopt(ctx context.Context, owner, orphan client.Object, gvk schema.GroupVersionKind) error {
	patch, err := a.adoption(owner, orphan)
	if err != nil {
		return fmt.Errorf("failed to encode %s %q: %w", gvk.Kind, orphan.GetName(), err)
	}
	if err := a.Client.Patch(ctx, orphan, patch, a.FieldOwner); err != nil {
		return fmt.Errorf("failed to adopt %s %q: %w", gvk.Kind, orphan.GetName(), err)
	}
	log.FromContext(ctx).Info("Adopted child", "kind", gvk.Kind, "child", orphan.GetName())
	a.Wrote(gvk.Kind, VerbPatch)
	return nil
}

// isAlive returns a conflict if the stored owner is another one or is being deleted. Call it after
// the orphans were read: the garbage collector removes the owner references from the children of an
// owner that is deleted with --cascade=orphan, and would delete a child that is adopted then. It
// does nothing if ConfirmOwners is false.
func (a *Applier) isAlive(ctx context.Context, owner client.Object) error {
	if !a.ConfirmOwners {
		return nil
	}
	gvk, live, err := a.readOwner(ctx, owner)
	if err != nil {
		return err
	}
	if live == nil || live.GetUID() != owner.GetUID() || live.GetDeletionTimestamp() != nil {
		return conflict(gvk, owner, "it was deleted a moment ago")
	}
	return nil
}

// adoption returns the patch that adds the owner to the owner references of an orphan, and changes
// nothing else.
func (a *Applier) adoption(owner, orphan client.Object) (client.Patch, error) {
	adopted := orphan.DeepCopyObject().(client.Object)
	if err := controllerutil.SetControllerReference(owner, adopted, a.Client.Scheme()); err != nil {
		return nil, err
	}
	patch := &unstructured.Unstructured{Object: map[string]any{}}
	patch.SetUID(orphan.GetUID())
	patch.SetResourceVersion(orphan.GetResourceVersion())
	patch.SetOwnerReferences(adopted.GetOwnerReferences())
	raw, err := json.Marshal(patch.Object)
	return client.RawPatch(types.MergePatchType, raw), err
}

// hasLabels reports whether a stored child has the labels that every child of an owner has.
func (a *Applier) hasLabels(live client.Object, owner string) bool {
	for key, value := range a.Labels(owner) {
		if live.GetLabels()[key] != value {
			return false
		}
	}
	return true
}
