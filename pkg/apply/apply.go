// Package apply is the only writer of child objects.
//
// A child that is missing is created with POST, so an existing object of another owner is never
// overwritten, even if the narrowed cache does not show it. An existing child is read from the API
// server and compared by the three-way merge of kubectl apply: the last declaration (in an
// annotation), the current declaration, and the stored object. One PATCH is sent if the merge has a
// difference or if the declaration changed. Fingerprints of the child and of its declaration are
// remembered afterwards. While both are unchanged, the child is neither read nor written.
//
// A child that has lost its owner reference is adopted first, by a patch of its owner references.
//
// Fields that were never declared belong to others and are not changed. Fields that are no longer
// declared are removed. Drift in a declared field is restored. A child that the owner does not
// control is not merged.
//
// For the reasons not to use server-side apply, see docs/adr/0002-three-way-merge.md.
package apply

import (
	"context"
	"fmt"
	"maps"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/log"

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
	// Labels returns the labels that every child of an owner with this name has, and by which the
	// cache selects it.
	Labels func(owner string) map[string]string
	// Annotation is the key of a child's last declaration.
	Annotation string
	// Wrote is called after each successful write.
	Wrote func(kind string, verb Verb)
	// ConfirmOwners enables Confirm, and a read of the owner before its orphans are adopted. It
	// requires the permission to get owners.
	ConfirmOwners bool
	// Unrecorded lists the keys of labels that the annotation of the last declaration leaves out. A
	// change of such a label alone changes no annotation. That matters for a Deployment, because
	// the API server counts a changed annotation as a new generation. A declaration without such a
	// label does not remove it, so a child must declare it always or never.
	Unrecorded []string
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
) ([]client.Object, error) {
	var out []client.Object
	for _, child := range children {
		found, err := a.compare(ctx, owner, live, child)
		same := found.match == asDeclared || found.match == settled
		if err == nil && found.match == unknown && a.backoff(owner, found) == 0 {
			same, err = a.look(ctx, owner, content, child, found, wasApplied)
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

// Forget drops everything that is remembered of a deleted owner.
func (a *Applier) Forget(owner types.NamespacedName) { a.Memory.forget(owner) }

// IsAsDeclared reports whether a child is unchanged since the last comparison or write, and matched
// its declaration then. It accepts a whole child and the form in the cache. Apply with the same
// declaration would not change it.
func (a *Applier) IsAsDeclared(child client.Object) bool {
	owner := metav1.GetControllerOfNoCopy(child)
	if owner == nil {
		return false
	}
	known, found := a.Memory.find(types.NamespacedName{Namespace: child.GetNamespace(), Name: owner.Name}, owner.UID, child.GetUID())
	return found && known.match == asDeclared && known.isOf(child)
}

// Delete removes a child. A child that does not exist, or that another object of its name has
// replaced, is not an error.
func (a *Applier) Delete(ctx context.Context, child client.Object) error {
	gvk, err := apiutil.GVKForObject(child, a.Client.Scheme())
	if err != nil {
		return fmt.Errorf("failed to find kind of %s: %w", child.GetName(), err)
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

// bring writes a child that is not as declared, and returns the stored child.
func (a *Applier) bring(
	ctx context.Context, owner client.Object, content Content, child client.Object, found comparison,
) (client.Object, error) {
	if found.match == missing {
		if content != nil {
			if err := content.Fill(ctx, child); err != nil {
				return nil, err
			}
		}
		if created, err := a.create(ctx, owner, child, found); err != nil || created != nil {
			return created, err
		}
	}
	return a.patch(ctx, owner, content, child, found)
}

// create creates a child and returns it, or nil without an error if the name is taken.
func (a *Applier) create(ctx context.Context, owner, child client.Object, found comparison) (client.Object, error) {
	declared, err := declaration(child)
	if err != nil {
		return nil, fmt.Errorf("failed to encode %s %q: %w", found.gvk.Kind, child.GetName(), err)
	}
	child = child.DeepCopyObject().(client.Object)
	annotations := map[string]string{}
	maps.Copy(annotations, child.GetAnnotations())
	annotations[a.Annotation] = string(a.record(declared))
	child.SetAnnotations(annotations)
	child.SetResourceVersion("")
	if err := a.confirmUnlessNew(ctx, owner); err != nil {
		return nil, err
	}
	err = a.Client.Create(ctx, child, a.FieldOwner)
	if apierrors.IsAlreadyExists(err) && !denied.Is(err) || isRefused(err) && a.exists(ctx, child) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("failed to create %s %q: %w", found.gvk.Kind, child.GetName(), err)
	}
	a.note(owner, child, found, asDeclared)
	a.wrote(ctx, found.gvk, child, VerbCreate)
	return child, nil
}

// exists reports whether the API server has an object with the name of the child. The cache does
// not show an object that lost the operator's label. If that object has a node port, the API server
// reports an allocated port instead of a taken name.
func (a *Applier) exists(ctx context.Context, child client.Object) bool {
	return a.Reader.Get(ctx, client.ObjectKeyFromObject(child), emptyOf(child)) == nil
}

func (a *Applier) wrote(ctx context.Context, gvk schema.GroupVersionKind, child client.Object, verb Verb) {
	log.FromContext(ctx).Info("Wrote child", "verb", verb, "kind", gvk.Kind, "child", child.GetName())
	a.Wrote(gvk.Kind, verb)
}
