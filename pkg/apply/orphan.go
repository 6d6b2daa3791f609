package apply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
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

// refuse returns *NotOurs for a stored object without the owner's reference, unless the object is an
// orphan of an owner with this kind and name. Other errors are errors of the content.
func (p *pass) refuse(ctx context.Context, child *candidate, stored client.Object) error {
	refusal := notOurs(child, stored)
	ours := labels.SelectorFromSet(p.Labels(p.owner.GetName()))
	if refusal.Controller != "" || !ours.Matches(labels.Set(stored.GetLabels())) {
		return refusal
	}

	switch {
	case !p.isRecorded(child.object, stored):
		refusal.Why = fmt.Sprintf("its annotation %s does not reference this %s", p.Annotation, refusal.OwnerKind)
		return refusal
	case !sameSelector(child.object, stored):
		refusal.Why = "its selector differs"
		return refusal
	}

	switch err := p.verify(ctx, child, stored); {
	case IsForged(err) != nil:
		refusal.Why = "its content differs"
	case err != nil:
		return err
	case stored.GetDeletionTimestamp() != nil:
		refusal.Predecessor = true
	case p.spend(stored.GetUID()) > 0:
		refusal.Why = "another client keeps removing its owner reference"
	default:
		return nil
	}

	return refusal
}

// isRecorded reports whether the record of a stored object is that of a child with this name, of an
// owner with this kind and name. A restored object can be in another namespace than before.
func (a *Applier) isRecorded(child, stored client.Object) bool {
	record := emptyOf(stored)
	_ = json.Unmarshal(sanitizeRecord(stored, a.recordOf(stored)), record) // of this type, by sanitizeRecord
	before, owner := metav1.GetControllerOf(record), metav1.GetControllerOf(child)
	return before != nil && sameOwner(before, owner) && record.GetName() == child.GetName()
}

// sameSelector reports whether both objects have the same selector, or none.
func sameSelector(child, stored client.Object) bool {
	is, err1 := runtime.DefaultUnstructuredConverter.ToUnstructured(child)
	was, err2 := runtime.DefaultUnstructuredConverter.ToUnstructured(stored)
	if err1 != nil || err2 != nil {
		return false
	}
	return !slices.ContainsFunc(atomicFields, func(path []string) bool {
		declared, _, _ := unstructured.NestedFieldNoCopy(is, path...)
		live, _, _ := unstructured.NestedFieldNoCopy(was, path...)
		return !reflect.DeepEqual(declared, live)
	})
}

// adopt adds the owner to the owner references of the child's orphan, and changes nothing else.
func (p *pass) adopt(ctx context.Context, child *candidate) error {
	adopted := child.orphan.DeepCopyObject().(client.Object)
	err := controllerutil.SetControllerReference(p.owner, adopted, p.Client.Scheme())
	var patch []byte
	if err == nil {
		patch, err = client.MergeFromWithOptions(child.orphan, client.MergeFromWithOptimisticLock{}).Data(adopted)
	}
	if err == nil {
		err = p.Client.Patch(ctx, child.orphan, client.RawPatch(types.MergePatchType, patch), p.FieldOwner)
	}
	if err != nil {
		return child.failed("adopt", err)
	}

	log.FromContext(ctx).Info("Adopted child", "kind", child.gvk.Kind, "child", child.orphan.GetName())
	p.Wrote(child.gvk.Kind, VerbPatch)
	return nil
}

// NotOurs is the error for a child whose name an object has that the owner does not control.
type NotOurs struct {
	// Kind and Name identify the conflicting object.
	Kind, Name string
	// OwnerKind is the kind of the owner.
	OwnerKind string
	// Controller describes the controlling owner of that object, or is "" if it has none.
	Controller string
	// Why is why that object is not adopted, or "" if it does not have the operator's labels.
	Why string
	// Predecessor is true for a child of an earlier owner with this name, which ends soon.
	Predecessor bool
	// Others are the other children whose names are taken.
	Others []*NotOurs
}

// Error names all conflicting objects and the remedy. The deletion of one of them alone would not
// help, and can end what the object serves.
func (e *NotOurs) Error() string {
	if e.Predecessor {
		return fmt.Sprintf("waiting for the deletion of %s %q, which belongs to an earlier object of this name", e.Kind, e.Name)
	}
	if len(e.Others) == 0 {
		return fmt.Sprintf("%s %q exists and is not controlled by this %s (%s): create the %[3]s under another name, "+
			"or delete that object if nothing needs it", e.Kind, e.Name, e.OwnerKind, e.owner())
	}

	taken := make([]string, 0, 1+len(e.Others))
	for _, one := range append([]*NotOurs{e}, e.Others...) {
		taken = append(taken, fmt.Sprintf("%s %q (%s)", one.Kind, one.Name, one.owner()))
	}
	return fmt.Sprintf("%s exist and are not controlled by this %s: create the %[2]s under another name, "+
		"or delete all of these objects if nothing needs them", strings.Join(taken, ", "), e.OwnerKind)
}

func (e *NotOurs) owner() string {
	switch {
	case e.Controller != "":
		return "it is controlled by " + e.Controller
	case e.Why != "":
		return "nothing controls it, and " + e.Why
	}
	return "nothing controls it"
}

// notOurs returns the error for a stored object. The declared child must have its owner reference.
func notOurs(child *candidate, stored client.Object) *NotOurs {
	owner := metav1.GetControllerOf(child.object)
	taken := &NotOurs{Kind: child.gvk.Kind, Name: stored.GetName(), OwnerKind: owner.Kind}
	if controller := metav1.GetControllerOf(stored); controller != nil {
		taken.Controller = fmt.Sprintf("%s %q", controller.Kind, controller.Name)
		taken.Predecessor = sameOwner(controller, owner)
	}

	return taken
}

// sameOwner ignores the version, which is not part of the identity of an owner.
func sameOwner(a, b *metav1.OwnerReference) bool {
	kind := schema.FromAPIVersionAndKind(a.APIVersion, a.Kind).GroupKind()
	return kind == schema.FromAPIVersionAndKind(b.APIVersion, b.Kind).GroupKind() && a.Name == b.Name
}

// IsNotOurs returns the *NotOurs in the error's chain, or nil if there is none.
func IsNotOurs(err error) *NotOurs {
	taken, _ := errors.AsType[*NotOurs](err)
	return taken
}
