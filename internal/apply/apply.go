// Package apply is the only writer of child objects.
//
// A child is created with POST, so that an object which exists already and belongs to somebody else is never taken
// over, not even when the narrowed cache does not show it. A child that exists is compared by the three-way merge of
// kubectl apply: what was declared last (kept in an annotation), what is declared now, and what is stored. Only if
// that merge asks for something, or the declaration is another one, is one PATCH sent. The comparison of a child with
// its own record is made when it enters the cache (Digest); a pass then compares digests, and reads the child from the
// API server only when there is something to write. Fields that were never declared belong to others and stay as they
// are; fields that are no longer declared are removed; drift in a declared field is repaired.
// docs/adr/0002-three-way-merge.md says why this is not server-side apply.
package apply

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// FieldOwner is the field manager under which the operator writes.
const FieldOwner = client.FieldOwner("nginx-operator")

// Verb is what a write did: create, patch or delete.
type Verb string

// The verbs of the writes, as the API server's audit log names them.
const (
	VerbCreate Verb = "create"
	VerbPatch  Verb = "patch"
	VerbDelete Verb = "delete"
)

// NotOurs is the error for a child whose name is taken by an object that the owner does not control.
type NotOurs struct {
	// Kind and Name are those of the object in the way.
	Kind, Name string
	// Controller describes the owner that controls it, "" where none does.
	Controller string
	// Predecessor: it was made for an earlier object of the owner's kind and name, so the garbage collector is about to
	// delete it.
	Predecessor bool
}

// Error says what is in the way and what to do about it.
func (e *NotOurs) Error() string {
	if e.Predecessor {
		return fmt.Sprintf("waiting for the deletion of %s %q, which belongs to an earlier object of this name", e.Kind, e.Name)
	}
	owner := "nobody controls it"
	if e.Controller != "" {
		owner = "it is controlled by " + e.Controller
	}
	return fmt.Sprintf("%s %q exists already and is not ours (%s): delete or rename it, or choose another name", e.Kind, e.Name, owner)
}

// Applier writes children. The zero value is not usable; all fields are required.
type Applier struct {
	// Client reads from the cache, with read-your-writes consistency, and writes to the API server. In the cache a
	// child need not be whole; see Digest.
	Client client.Client
	// Reader reads from the API server. It is asked before a patch, and when a create says that the name is taken.
	Reader client.Reader
	// Annotation is the key under which a child keeps what was declared last.
	Annotation string
	// Wrote is called after each successful write.
	Wrote func(kind string, verb Verb)
}

// Fill adds to an immutable child, before it is created, content that its declaration leaves out: no comparison needs
// it, so it is read only then. It returns a conflict where the content is no longer that of the declaration.
type Fill func(ctx context.Context, child client.Object) error

// Apply makes the children what they are declared to be, in their order, and stops at the first error, so that
// nothing is written that depends on a child which is not there. The owner becomes the controller of each. A child
// that was declared as a function of the stored one carries the latter's resourceVersion. Fill may be nil.
// Errors are *NotOurs, those of fill, or those of the API server; a conflict means that the pass was made from an old state.
func (a *Applier) Apply(ctx context.Context, owner client.Object, fill Fill, children ...client.Object) error {
	for _, child := range children {
		if err := a.applyOne(ctx, owner, fill, child); err != nil {
			return err
		}
	}
	return nil
}

// Pending returns the children that Apply would look at more closely: those that the cache does not show as they are
// declared. It sends no request.
func (a *Applier) Pending(ctx context.Context, owner client.Object, children ...client.Object) ([]client.Object, error) {
	var out []client.Object
	for _, child := range children {
		found, err := a.compare(ctx, owner, child)
		if err != nil && IsNotOurs(err) == nil {
			return nil, err
		}
		if err != nil || found.state != asDeclared {
			out = append(out, child)
		}
	}
	return out, nil
}

// Delete removes a child that is no longer wanted. One that is gone already, or was replaced meanwhile by another
// object of its name, is no error.
func (a *Applier) Delete(ctx context.Context, child client.Object) error {
	gvk, err := apiutil.GVKForObject(child, a.Client.Scheme())
	if err != nil {
		return fmt.Errorf("failed to find kind of %s: %w", child.GetName(), err)
	}
	uid := child.GetUID()
	err = a.Client.Delete(ctx, child, client.Preconditions{UID: &uid}, client.PropagationPolicy(metav1.DeletePropagationBackground))
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("failed to delete %s %q: %w", gvk.Kind, child.GetName(), err)
	}
	a.wrote(ctx, gvk, child, VerbDelete)
	return nil
}

// state is how a child in the cache relates to its declaration.
type state int

const (
	missing state = iota
	differs
	asDeclared
)

// comparison is a declared child beside what the cache has.
type comparison struct {
	gvk      schema.GroupVersionKind
	declared []byte
	state    state
}

// compare makes the owner the controller of the child and looks the child up in the cache.
func (a *Applier) compare(ctx context.Context, owner, child client.Object) (comparison, error) {
	if err := controllerutil.SetControllerReference(owner, child, a.Client.Scheme()); err != nil {
		return comparison{}, fmt.Errorf("failed to own child %s: %w", child.GetName(), err)
	}
	gvk, err := apiutil.GVKForObject(child, a.Client.Scheme())
	if err != nil {
		return comparison{}, fmt.Errorf("failed to find kind of %s: %w", child.GetName(), err)
	}
	declared, err := declaration(child)
	if err != nil {
		return comparison{}, fmt.Errorf("failed to encode %s %q: %w", gvk.Kind, child.GetName(), err)
	}
	out := comparison{gvk: gvk, declared: declared, state: differs}
	live := child.DeepCopyObject().(client.Object)
	err = a.Client.Get(ctx, client.ObjectKeyFromObject(child), live)
	switch {
	case apierrors.IsNotFound(err):
		out.state = missing
	case err != nil:
		return comparison{}, fmt.Errorf("failed to read %s %q: %w", gvk.Kind, child.GetName(), err)
	case !metav1.IsControlledBy(live, owner):
		return comparison{}, notOurs(gvk, child, live)
	case live.GetAnnotations()[a.Annotation] == digest(declared):
		out.state = asDeclared
	}
	return out, nil
}

func (a *Applier) applyOne(ctx context.Context, owner client.Object, fill Fill, child client.Object) error {
	found, err := a.compare(ctx, owner, child)
	if err != nil || found.state == asDeclared {
		return err
	}
	if found.state == missing {
		if fill != nil {
			if err := fill(ctx, child); err != nil {
				return err
			}
		}
		if created, err := a.create(ctx, found.gvk, child, found.declared); err != nil || created {
			return err
		}
	}
	return a.patch(ctx, found.gvk, owner, child, found.declared)
}

// create tells whether it created the child; false without an error means that the name is taken.
func (a *Applier) create(ctx context.Context, gvk schema.GroupVersionKind, child client.Object, declared []byte) (bool, error) {
	child = child.DeepCopyObject().(client.Object)
	annotations := map[string]string{}
	maps.Copy(annotations, child.GetAnnotations())
	annotations[a.Annotation] = string(declared)
	child.SetAnnotations(annotations)
	err := a.Client.Create(ctx, child, FieldOwner)
	if apierrors.IsAlreadyExists(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("failed to create %s %q: %w", gvk.Kind, child.GetName(), err)
	}
	a.wrote(ctx, gvk, child, VerbCreate)
	return true, nil
}

// patch compares the declaration with what the API server stores, and writes the difference.
func (a *Applier) patch(ctx context.Context, gvk schema.GroupVersionKind, owner, child client.Object, declared []byte) error {
	live := child.DeepCopyObject().(client.Object)
	stale := func(why string) error {
		return apierrors.NewConflict(schema.GroupResource{Group: gvk.Group, Resource: gvk.Kind}, child.GetName(), errors.New(why))
	}
	err := a.Reader.Get(ctx, client.ObjectKeyFromObject(child), live)
	if apierrors.IsNotFound(err) {
		return stale("it was deleted a moment ago")
	}
	if err != nil {
		return fmt.Errorf("failed to read %s %q before a write: %w", gvk.Kind, child.GetName(), err)
	}
	if !metav1.IsControlledBy(live, owner) {
		return notOurs(gvk, child, live)
	}
	if from := child.GetResourceVersion(); from != "" && from != live.GetResourceVersion() {
		return stale("it changed after the declaration was made from it")
	}
	last := []byte(live.GetAnnotations()[a.Annotation])
	if !json.Valid(last) {
		// Somebody removed or damaged the record: without it nothing counts as declared before.
		last = []byte("{}")
	}
	patch, err := threeWay(live, last, declared)
	if err == nil {
		if patch == nil && bytes.Equal(last, declared) {
			return nil
		}
		err = a.send(ctx, types.StrategicMergePatchType, patch, live, declared)
	}
	if errors.Is(err, errNotMerged) || apierrors.IsInvalid(err) {
		// Somebody changed the key of a list's element, its port for example, or took it away: merged with ours that gives
		// two elements of one name, or nothing at all. What cannot be merged is replaced, list by list.
		if patch, err = replacing(live, last, declared); err == nil {
			err = a.send(ctx, types.MergePatchType, patch, live, declared)
		}
	}
	if err != nil {
		return fmt.Errorf("failed to patch %s %q: %w", gvk.Kind, live.GetName(), err)
	}
	a.wrote(ctx, gvk, live, VerbPatch)
	return nil
}

// send sends a patch, which may be nil, with the record of the declaration.
func (a *Applier) send(ctx context.Context, patchType types.PatchType, patch []byte, live client.Object, declared []byte) error {
	patch, err := a.complete(patch, live, declared)
	if err != nil {
		return fmt.Errorf("failed to encode: %w", err)
	}
	return a.Client.Patch(ctx, live, client.RawPatch(patchType, patch), FieldOwner)
}

// complete adds to a patch, which may be nil, the record of the declaration, and the UID as a precondition: it is meant
// for this object and not for another that took the name since.
func (a *Applier) complete(patch []byte, live client.Object, declared []byte) ([]byte, error) {
	object := &unstructured.Unstructured{Object: map[string]any{}}
	if patch != nil {
		if err := json.Unmarshal(patch, &object.Object); err != nil {
			return nil, err
		}
	}
	object.SetUID(live.GetUID())
	if err := unstructured.SetNestedField(object.Object, string(declared), "metadata", "annotations", a.Annotation); err != nil {
		return nil, err
	}
	return json.Marshal(object.Object)
}

func (a *Applier) wrote(ctx context.Context, gvk schema.GroupVersionKind, child client.Object, verb Verb) {
	log.FromContext(ctx).Info("Wrote child", "verb", verb, "kind", gvk.Kind, "child", child.GetName())
	a.Wrote(gvk.Kind, verb)
}

// notOurs expects the child that was to be stored with its reference to the owner.
func notOurs(gvk schema.GroupVersionKind, child, live client.Object) error {
	err := &NotOurs{Kind: gvk.Kind, Name: live.GetName()}
	if controller := metav1.GetControllerOf(live); controller != nil {
		ours := metav1.GetControllerOf(child)
		err.Controller = fmt.Sprintf("%s %q", controller.Kind, controller.Name)
		err.Predecessor = groupOf(controller) == groupOf(ours) && controller.Kind == ours.Kind && controller.Name == ours.Name
	}
	return err
}

// groupOf returns the API group of an owner. Its version says only with which one the reference was written.
func groupOf(owner *metav1.OwnerReference) string {
	group, _, found := strings.Cut(owner.APIVersion, "/")
	if !found {
		return ""
	}
	return group
}

// IsNotOurs returns the *NotOurs in the error's chain, nil where there is none.
func IsNotOurs(err error) *NotOurs {
	var notOurs *NotOurs
	if errors.As(err, &notOurs) {
		return notOurs
	}
	return nil
}
