package apply

import (
	"errors"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// NotOurs is the error for a child whose name is taken by an object that the owner does not
// control.
type NotOurs struct {
	// Kind and Name identify the conflicting object.
	Kind, Name string
	// OwnerKind is the kind of the owner.
	OwnerKind string
	// Controller describes the controlling owner of that object, or is "" if it has none.
	Controller string
	// Why is why that object is not adopted, or "" if it does not have the operator's labels.
	Why string
	// Predecessor is true if that object belongs to an earlier object with the owner's kind and
	// name. It is about to be deleted.
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

// owner describes the owner of the conflicting object.
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

// sameOwner reports whether two owners have the same kind and name. The version of an owner
// reference is not part of its identity.
func sameOwner(a, b *metav1.OwnerReference) bool {
	kind := schema.FromAPIVersionAndKind(a.APIVersion, a.Kind).GroupKind()
	return kind == schema.FromAPIVersionAndKind(b.APIVersion, b.Kind).GroupKind() && a.Name == b.Name
}

// IsNotOurs returns the *NotOurs in the error's chain, or nil if there is none.
func IsNotOurs(err error) *NotOurs {
	taken, _ := errors.AsType[*NotOurs](err)
	return taken
}
