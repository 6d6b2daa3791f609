// Package apply is the only writer of child objects.
//
// A child that is missing is created with POST, so an existing object of another owner is never
// overwritten, even if the narrowed cache does not show it. An existing child is read from the API
// server and compared by the three-way merge of kubectl apply: the last declaration (in an
// annotation), the current declaration, and the stored object. One PATCH is sent if the merge has a
// difference or if the declaration changed. While the fingerprints of the child and of its
// declaration are unchanged, the child is neither read nor written.
//
// Fields that were never declared belong to others and are not changed. Fields that are no longer
// declared are removed. Drift in a declared field is restored. A child that the owner does not
// control is not merged. A child that has lost its owner reference is adopted first.
//
// For the reasons not to use server-side apply, see docs/adr/0002-three-way-merge.md.
package apply

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/example/nginx-operator/pkg/denied"
)

// Verb is the kind of a write: create, patch, or delete.
type Verb string

// The verbs, as in the audit log of the API server.
const (
	VerbCreate Verb = "create"
	VerbPatch  Verb = "patch"
	VerbDelete Verb = "delete"
)

// Applier writes children. The fields up to Wrote are required.
type Applier struct {
	// Client reads from the cache, with read-your-writes consistency, and writes to the API server.
	// The cache can have a stripped child; see Stamp. It reads only children that a Live does not
	// know.
	Client client.Client
	// Reader reads from the API server. It reads a child that is not known to be as declared.
	Reader client.Reader
	// FieldOwner is the field manager of the operator.
	FieldOwner client.FieldOwner
	// Labels returns the labels of an owner's children, by which the cache selects them.
	Labels func(owner string) map[string]string
	// Annotation is the key of a child's last declaration.
	Annotation string
	// Wrote is called after each successful write.
	Wrote func(kind string, verb Verb)
	// ConfirmOwners enables Confirm, and requires the permission to get owners.
	ConfirmOwners bool
	// Unrecorded is the key of a label that the annotation of the last declaration leaves out, or
	// "". A change of this label alone changes no annotation, which would be a new generation of a
	// Deployment. A child must declare the label always or never, because nothing removes it.
	Unrecorded string
	// Abbreviated is the key of an annotation that a declaration reduces to its first word, or "".
	Abbreviated string

	// Memory has what this process remembers of the owners. The zero value is empty.
	Memory Memory
}

// Live has the children of an owner that the caller has read from the cache. A nil Live knows none.
type Live interface {
	// Find returns the child with the kind and name of a declared child, or nil if it does not
	// exist, and whether the caller has read it. It returns objects of others, too.
	Find(child client.Object) (found client.Object, known bool)
}

// Apply writes the declared children in their order and makes the owner the controller of each. It
// stops at the first error, because later children can depend on earlier ones. A child that was
// declared as a function of the stored child has the resourceVersion of the stored child. Content
// can be nil.
//
// Apply returns the time until the next call if another client keeps changing a child, or 0 if no
// child waits. Errors are *NotOurs, *Forged for a child without its content, which Apply does not
// change, errors of the content, or errors of the API server. A conflict means that the reconcile
// read an old state.
func (a *Applier) Apply(
	ctx context.Context, owner client.Object, live Live, content Content, children ...client.Object,
) (time.Duration, error) {
	applied, err := a.ApplyAll(ctx, owner, live, content, children, nil)
	return applied.RequeueAfter, err
}

// Pending returns the children that Apply would change, regardless of earlier declarations. A child
// that admission would change back does not count. If Apply has written the declaration before,
// perhaps by another release, wasApplied is true: a child that is missing or differs from its last
// declaration counts, and a child does not count if only this release declares it differently.
// Pending writes nothing. Content can be nil.
func (a *Applier) Pending(
	ctx context.Context, owner client.Object, live Live, content Content, children []client.Object, wasApplied bool,
) (pending []client.Object, err error) {
	p := &pass{a, owner, live, content}
	for _, object := range children {
		child := &candidate{object: object}
		err := p.compare(ctx, child)
		same := child.match == asDeclared || child.match == settled
		if err == nil && child.match == unknown && p.backoff(child) == 0 {
			same, err = p.look(ctx, child, wasApplied)
		}
		if err != nil && IsNotOurs(err) == nil {
			return nil, err
		}
		if err != nil || !same {
			pending = append(pending, object)
		}
	}

	return pending, nil
}

// Forget drops everything that is remembered of a deleted owner.
func (a *Applier) Forget(owner types.NamespacedName) {
	a.Memory.mu.Lock()
	defer a.Memory.mu.Unlock()
	delete(a.Memory.owners, owner)
}

// IsAsDeclared reports whether a child is unchanged since the last comparison or write, and matched
// its declaration then. It accepts a whole child and the form in the cache. Apply with the same
// declaration would not change it.
func (a *Applier) IsAsDeclared(child client.Object) bool {
	owner := metav1.GetControllerOfNoCopy(child)
	if owner == nil {
		return false
	}

	name := types.NamespacedName{Namespace: child.GetNamespace(), Name: owner.Name}
	last, isKnown := a.Memory.find(name, owner.UID, child.GetUID())
	return isKnown && last.match == asDeclared && last.isOf(child)
}

// Delete removes a child. It is no error if it is gone, or another object has its name.
func (a *Applier) Delete(ctx context.Context, child client.Object) error {
	gvk, err := apiutil.GVKForObject(child, a.Client.Scheme())
	if err != nil {
		return fmt.Errorf("failed to find the kind of %s: %w", child.GetName(), err)
	}

	uid := child.GetUID()
	err = a.Client.Delete(ctx, child, client.Preconditions{UID: &uid}, client.PropagationPolicy(metav1.DeletePropagationBackground))
	if (apierrors.IsNotFound(err) || apierrors.IsConflict(err)) && !denied.Is(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("failed to delete %s %q: %w", gvk.Kind, child.GetName(), err)
	}

	a.wrote(ctx, gvk, child, VerbDelete)
	return nil
}

// create creates a child and returns it, or nil without an error if the name is taken.
func (p *pass) create(ctx context.Context, child *candidate) (client.Object, error) {
	if p.content != nil {
		if err := p.content.Fill(ctx, child.object); err != nil {
			return nil, err
		}
	}

	declared, err := declaration(child.object)
	if err != nil {
		return nil, child.failed("encode", err)
	}

	created := child.object.DeepCopyObject().(client.Object)
	annotations := map[string]string{}
	maps.Copy(annotations, created.GetAnnotations())
	annotations[p.Annotation] = string(p.record(declared))
	created.SetAnnotations(annotations)
	created.SetResourceVersion("")

	// An owner that never changed has no old declaration. The patch of a child confirms it.
	if p.owner.GetGeneration() > 1 {
		if err := p.Confirm(ctx, p.owner); err != nil {
			return nil, err
		}
	}

	err = p.Client.Create(ctx, created, p.FieldOwner)

	// The cache does not show an object that lost the operator's label. If that object has a node
	// port, the API server reports an allocated port instead of a taken name.
	isTaken := apierrors.IsAlreadyExists(err) && !denied.Is(err) ||
		isRefused(err) && p.Reader.Get(ctx, client.ObjectKeyFromObject(created), emptyOf(created)) == nil
	if isTaken {
		return nil, nil
	}
	if err != nil {
		return nil, child.failed("create", err)
	}

	p.note(child, created, asDeclared)
	p.wrote(ctx, child.gvk, created, VerbCreate)
	return created, nil
}

func (a *Applier) wrote(ctx context.Context, gvk schema.GroupVersionKind, child client.Object, verb Verb) {
	log.FromContext(ctx).Info("Wrote child", "verb", verb, "kind", gvk.Kind, "child", child.GetName())
	a.Wrote(gvk.Kind, verb)
}

// AsReconciler is reconcile.AsReconciler, and calls forget if the object does not exist. Reconciles
// of one name never run concurrently, so nothing is remembered of the object after that.
func AsReconciler[T client.Object](
	reader client.Reader, inner reconcile.ObjectReconciler[T], forget func(types.NamespacedName),
) reconcile.Reconciler {
	return reconcile.Func(func(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
		owner := reflect.New(reflect.TypeFor[T]().Elem()).Interface().(T)
		err := reader.Get(ctx, request.NamespacedName, owner)
		if apierrors.IsNotFound(err) {
			forget(request.NamespacedName)
			return reconcile.Result{}, nil
		}
		if err != nil {
			return reconcile.Result{}, fmt.Errorf("failed to read %T: %w", owner, err)
		}
		return inner.Reconcile(ctx, owner)
	})
}
