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
	// Controller describes the controlling owner of that object, or is "" if it has none.
	Controller string
	// Predecessor is true if that object belongs to an earlier object with the owner's kind and
	// name. The garbage collector will delete it.
	Predecessor bool
}

// Error names the conflicting object and the remedy.
func (e *NotOurs) Error() string {
	if e.Predecessor {
		return fmt.Sprintf("waiting for the deletion of %s %q, which belongs to an earlier object of this name", e.Kind, e.Name)
	}
	owner := "nothing controls it"
	if e.Controller != "" {
		owner = "it is controlled by " + e.Controller
	}
	return fmt.Sprintf("%s %q exists and is not controlled by this NginxOperator (%s): delete or rename it, or choose another name",
		e.Kind, e.Name, owner)
}

// notOurs returns the error for a live object. The declared child must have its owner reference.
func notOurs(gvk schema.GroupVersionKind, child, live client.Object) error {
	err := &NotOurs{Kind: gvk.Kind, Name: live.GetName()}
	if controller := metav1.GetControllerOf(live); controller != nil {
		ours := metav1.GetControllerOf(child)
		err.Controller = fmt.Sprintf("%s %q", controller.Kind, controller.Name)
		err.Predecessor = groupOf(controller) == groupOf(ours) && controller.Kind == ours.Kind && controller.Name == ours.Name
	}
	return err
}

// groupOf returns the API group of an owner. The version of an owner reference is not part of its
// identity.
func groupOf(owner *metav1.OwnerReference) string {
	group, _, found := strings.Cut(owner.APIVersion, "/")
	if !found {
		return ""
	}
	return group
}

// IsNotOurs returns the *NotOurs in the error's chain, or nil if there is none.
func IsNotOurs(err error) *NotOurs {
	var notOurs *NotOurs
	if errors.As(err, &notOurs) {
		return notOurs
	}
	return nil
}
