// Package apply is the only writer of child objects.
//
// A child is created with POST, so that an object which exists already and belongs to somebody else is never taken
// over, not even when the narrowed cache does not show it. A child that exists is read from the API server and compared by
// the three-way merge of kubectl apply: what was declared last (kept in an annotation), what is declared now, and what is
// stored. Only if that merge asks for something, or the declaration is another one, is one PATCH sent. What that came to
// is remembered with a fingerprint of the child and one of its declaration; while both are the same nothing is read or
// written. Fields that were never declared belong to others and stay as they are; fields that are no longer declared are
// removed; drift in a declared field is restored. Nothing is merged of a child that the owner does not control.
// docs/adr/0002-three-way-merge.md says why this is not server-side apply.
package apply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"time"

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
	owner := "nothing controls it"
	if e.Controller != "" {
		owner = "it is controlled by " + e.Controller
	}
	return fmt.Sprintf("%s %q exists and is not controlled by this NginxOperator (%s): delete or rename it, or choose another name",
		e.Kind, e.Name, owner)
}

// Applier writes children. The zero value is not usable; all exported fields are required.
type Applier struct {
	// Client reads from the cache, with read-your-writes consistency, and writes to the API server. In the cache a
	// child need not be whole; see Stamp.
	Client client.Client
	// Reader reads from the API server. It is asked about a child that is not known to be as declared.
	Reader client.Reader
	// Annotation is the key under which a child keeps what was declared last.
	Annotation string
	// Wrote is called after each successful write.
	Wrote func(kind string, verb Verb)

	memory memory
}

// Fill adds to an immutable child, before it is created, content that its declaration leaves out: no comparison needs
// it, so it is read only then. It returns a conflict where the content is no longer that of the declaration.
type Fill func(ctx context.Context, child client.Object) error

// Apply makes the children what they are declared to be, in their order, and stops at the first error, so that
// nothing is written that depends on a child which is not there. The owner becomes the controller of each. A child
// that was declared as a function of the stored one carries the latter's resourceVersion. Fill may be nil.
// A child that somebody changes again and again is left as it is for a while; Apply returns then after what time to call it again,
// and 0 otherwise. Errors are *NotOurs, those of fill, or those of the API server; a conflict means that the reconcile was made from an
// old state.
func (a *Applier) Apply(ctx context.Context, owner client.Object, fill Fill, children ...client.Object) (time.Duration, error) {
	var again time.Duration
	uids := make([]types.UID, 0, len(children))
	for _, child := range children {
		found, err := a.compare(ctx, owner, child)
		if err != nil {
			return 0, err
		}
		if wait := a.toWait(owner, found); wait > 0 {
			again = max(again, wait)
		} else if found.uid, err = a.bring(ctx, owner, fill, child, found); err != nil {
			return 0, err
		}
		uids = append(uids, found.uid)
	}
	a.memory.keep(owner, uids)
	return again, nil
}

// Pending returns the children that Apply would change, whatever was declared of them before. It writes nothing.
func (a *Applier) Pending(ctx context.Context, owner client.Object, children ...client.Object) ([]client.Object, error) {
	var out []client.Object
	for _, child := range children {
		found, err := a.compare(ctx, owner, child)
		same := found.match == asDeclared
		if err == nil && (found.match == unknown || found.match == differs) && a.toWait(owner, found) == 0 {
			same, err = a.look(ctx, owner, child, found)
		}
		if err != nil && IsNotOurs(err) == nil {
			return nil, err
		}
		if err != nil || !same {
			out = append(out, child)
		}
	}
	return out, nil
}

// Forget drops what is remembered of the children of an owner that is gone.
func (a *Applier) Forget(owner types.NamespacedName) { a.memory.forget(owner) }

// IsAsDeclared reports whether a child, whole or as the cache has it, is what the last look at it found to be as declared: the one that
// Apply wrote, say. An Apply of the same declaration has nothing to do with it.
func (a *Applier) IsAsDeclared(child client.Object) bool {
	owner := metav1.GetControllerOfNoCopy(child)
	if owner == nil {
		return false
	}
	known, found := a.memory.find(types.NamespacedName{Namespace: child.GetNamespace(), Name: owner.Name}, owner.UID, child.GetUID())
	return found && known.asDeclared && known.isOf(child)
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

// match is how a child relates to its declaration.
type match int

const (
	// unknown: it has not been looked at since it or its declaration changed.
	unknown match = iota
	missing
	differs
	asDeclared
)

// comparison is a declared child beside what is known of the stored one.
type comparison struct {
	gvk   schema.GroupVersionKind
	match match
	// uid is that of the child in the cache, "" where it is missing.
	uid types.UID
	// drifted: it was looked at under the same declaration, and has changed since.
	drifted bool
	// declared is the fingerprint of the declaration.
	declared uint64
}

// compare makes the owner the controller of the child, looks the child up in the cache, and remembers what is known of it.
func (a *Applier) compare(ctx context.Context, owner, child client.Object) (comparison, error) {
	if err := controllerutil.SetControllerReference(owner, child, a.Client.Scheme()); err != nil {
		return comparison{}, fmt.Errorf("failed to own child %s: %w", child.GetName(), err)
	}
	gvk, err := apiutil.GVKForObject(child, a.Client.Scheme())
	if err != nil {
		return comparison{}, fmt.Errorf("failed to find kind of %s: %w", child.GetName(), err)
	}
	out := comparison{gvk: gvk, declared: fingerprint(child)}
	cached := emptyOf(child)
	err = a.Client.Get(ctx, client.ObjectKeyFromObject(child), cached)
	switch {
	case apierrors.IsNotFound(err):
		out.match = missing
		return out, nil
	case err != nil:
		return comparison{}, fmt.Errorf("failed to read %s %q: %w", gvk.Kind, child.GetName(), err)
	case !metav1.IsControlledBy(cached, owner):
		return comparison{}, notOurs(gvk, child, cached)
	}
	out.uid = cached.GetUID()
	known, found := a.memory.find(client.ObjectKeyFromObject(owner), owner.GetUID(), out.uid)
	if found && known.declared == out.declared && out.declared != unreadable {
		out.drifted = !known.isOf(cached)
		switch {
		case out.drifted:
		case known.asDeclared:
			out.match = asDeclared
		default:
			out.match = differs
		}
	}
	return out, nil
}

// emptyOf returns an object of the same kind to read into.
func emptyOf(child client.Object) client.Object {
	return reflect.New(reflect.TypeOf(child).Elem()).Interface().(client.Object)
}

// toWait returns how long a child is left as it is, because somebody changes it again and again.
func (a *Applier) toWait(owner client.Object, found comparison) time.Duration {
	if !found.drifted {
		return 0
	}
	return a.memory.spend(owner, found.uid, time.Now())
}

// bring makes a child what it is declared to be, and returns its UID.
func (a *Applier) bring(ctx context.Context, owner client.Object, fill Fill, child client.Object, found comparison) (types.UID, error) {
	if found.match == asDeclared {
		return found.uid, nil
	}
	if found.match == missing {
		if fill != nil {
			if err := fill(ctx, child); err != nil {
				return "", err
			}
		}
		if created, err := a.create(ctx, owner, child, found); err != nil || created != "" {
			return created, err
		}
	}
	return a.patch(ctx, owner, child, found)
}

// note remembers that a child is or is not as declared.
func (a *Applier) note(owner, live client.Object, found comparison, asDeclared bool) {
	a.memory.note(owner, look{
		child: childOf(live.GetUID()), stored: fingerprint(live), declared: found.declared, asDeclared: asDeclared,
	})
}

// look compares a child with its declaration, reports whether it is the same, and remembers what Apply would do.
func (a *Applier) look(ctx context.Context, owner, child client.Object, found comparison) (bool, error) {
	live, err := a.read(ctx, owner, child, found)
	if err != nil {
		return false, err
	}
	declared, err := declaration(child)
	if err != nil {
		return false, fmt.Errorf("failed to encode %s %q: %w", found.gvk.Kind, child.GetName(), err)
	}
	patch, _, err := difference(live, believed(live, a.recordOf(live)), declared)
	same := err == nil && patch == nil
	a.note(owner, live, found, same && a.recordOf(live) == string(declared))
	return same, nil
}

// read reads the whole child from the API server. It has to be the owner's, and the one that the declaration was made from.
func (a *Applier) read(ctx context.Context, owner, child client.Object, found comparison) (client.Object, error) {
	live := emptyOf(child)
	stale := func(why string) error {
		resource := schema.GroupResource{Group: found.gvk.Group, Resource: found.gvk.Kind}
		return apierrors.NewConflict(resource, child.GetName(), errors.New(why))
	}
	err := a.Reader.Get(ctx, client.ObjectKeyFromObject(child), live)
	switch {
	case apierrors.IsNotFound(err):
		return nil, stale("it was deleted a moment ago")
	case err != nil:
		return nil, fmt.Errorf("failed to read %s %q: %w", found.gvk.Kind, child.GetName(), err)
	case !metav1.IsControlledBy(live, owner):
		return nil, notOurs(found.gvk, child, live)
	}
	if from := child.GetResourceVersion(); from != "" && from != live.GetResourceVersion() {
		return nil, stale("it changed after the declaration was made from it")
	}
	return live, nil
}

func (a *Applier) recordOf(live client.Object) string { return live.GetAnnotations()[a.Annotation] }

// create returns the UID of the child that it created; "" without an error means that the name is taken.
func (a *Applier) create(ctx context.Context, owner, child client.Object, found comparison) (types.UID, error) {
	declared, err := declaration(child)
	if err != nil {
		return "", fmt.Errorf("failed to encode %s %q: %w", found.gvk.Kind, child.GetName(), err)
	}
	child = child.DeepCopyObject().(client.Object)
	annotations := map[string]string{}
	maps.Copy(annotations, child.GetAnnotations())
	annotations[a.Annotation] = string(declared)
	child.SetAnnotations(annotations)
	child.SetResourceVersion("")
	err = a.Client.Create(ctx, child, FieldOwner)
	if apierrors.IsAlreadyExists(err) || isRefused(err) && a.exists(ctx, child) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("failed to create %s %q: %w", found.gvk.Kind, child.GetName(), err)
	}
	a.note(owner, child, found, true)
	a.wrote(ctx, found.gvk, child, VerbCreate)
	return child.GetUID(), nil
}

// exists reports whether the API server has an object of the child's name. The cache does not show one that lost the operator's label, and
// where it has a node port the API server says that this is allocated, not that the name is taken.
func (a *Applier) exists(ctx context.Context, child client.Object) bool {
	return a.Reader.Get(ctx, client.ObjectKeyFromObject(child), emptyOf(child)) == nil
}

// patch compares the declaration with what the API server stores, and writes the difference.
func (a *Applier) patch(ctx context.Context, owner, child client.Object, found comparison) (types.UID, error) {
	live, err := a.read(ctx, owner, child, found)
	if err != nil {
		return "", err
	}
	declared, err := declaration(child)
	if err != nil {
		return "", fmt.Errorf("failed to encode %s %q: %w", found.gvk.Kind, child.GetName(), err)
	}
	wrote, err := a.write(ctx, live, declared)
	if err != nil {
		return "", fmt.Errorf("failed to patch %s %q: %w", found.gvk.Kind, child.GetName(), err)
	}
	a.note(owner, live, found, true)
	if wrote {
		a.wrote(ctx, found.gvk, live, VerbPatch)
	}
	return live.GetUID(), nil
}

// write makes the live object what is declared, and reports whether that took a request.
func (a *Applier) write(ctx context.Context, live client.Object, declared []byte) (bool, error) {
	last := believed(live, a.recordOf(live))
	patch, patchType, err := difference(live, last, declared)
	if err == nil && patch == nil && a.recordOf(live) == string(declared) {
		return false, nil
	}
	if err == nil {
		err = a.send(ctx, patchType, patch, live, declared)
	}
	// Somebody changed the key of a list's element, its port for example, or took it away: merged with ours that gives two
	// elements of one name, or nothing at all. What cannot be merged is replaced, list by list. When that is refused as well, the
	// record says that we declared what nobody can take away: then only what is declared now is written.
	for _, record := range [][]byte{last, []byte(noRecord)} {
		if !errors.Is(err, errNotMerged) && !isRefused(err) {
			break
		}
		if patch, err = replacing(live, record, declared); err == nil {
			err = a.send(ctx, types.MergePatchType, patch, live, declared)
		}
	}
	return err == nil, err
}

// isRefused reports whether the API server refused what was written. That two ports have the same node port it says in words only
// (pkg/registry/core/service/storage/alloc.go).
func isRefused(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || err != nil && strings.Contains(err.Error(), "duplicate nodePort")
}

// send sends a patch, which may be nil, with the record of the declaration. It leaves the answer in the live object.
func (a *Applier) send(ctx context.Context, patchType types.PatchType, patch []byte, live client.Object, declared []byte) error {
	patch, err := a.complete(patch, live, declared)
	if err != nil {
		return fmt.Errorf("failed to encode: %w", err)
	}
	return a.Client.Patch(ctx, live, client.RawPatch(patchType, patch), FieldOwner)
}

// complete adds to a patch, which may be nil, the record of the declaration, and UID and resourceVersion as preconditions: it is meant
// for this object and not for another that took the name since, and for what was read of it. What somebody changes between the read and
// the patch would be remembered as declared.
func (a *Applier) complete(patch []byte, live client.Object, declared []byte) ([]byte, error) {
	object := &unstructured.Unstructured{Object: map[string]any{}}
	if patch != nil {
		if err := json.Unmarshal(patch, &object.Object); err != nil {
			return nil, err
		}
	}
	object.SetUID(live.GetUID())
	object.SetResourceVersion(live.GetResourceVersion())
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
