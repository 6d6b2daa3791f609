package apply

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// pass is one call of an Applier for the children of an owner. live and content can be nil.
type pass struct {
	*Applier
	owner   client.Object
	live    Live
	content Content
}

type candidate struct {
	object client.Object
	gvk    schema.GroupVersionKind
	// isOrdered is true for a child on which later children depend.
	isOrdered bool
	match     match
	// uid is the UID of the stored child, or "" if the child is missing.
	uid types.UID
	// drifted is true if the child has changed since it was compared with the same declaration.
	drifted bool
	// declared is the fingerprint of the declaration.
	declared uint64
	// orphan is the stored child if it has no controller, but is a child of the owner, or nil.
	orphan client.Object
	// err is why the child cannot be written: *NotOurs if its name is taken, or another error.
	err error
}

func (c *candidate) failed(verb string, err error) error {
	return fmt.Errorf("failed to %s %s %q: %w", verb, c.gvk.Kind, c.object.GetName(), err)
}

// isTaken reports whether another object, which stays, has the name of the child.
func (c *candidate) isTaken() bool {
	taken := IsNotOurs(c.err)
	return taken != nil && !taken.Predecessor
}

func (c *candidate) isMissing() bool { return c.err == nil && c.match == missing }

// Adopt makes the owner the controller of its orphans, and returns these. It changes nothing else.
// A declaration can depend on the stored children, so the caller must render the children again
// after an adoption. If the name of an ordered child is taken, Adopt adopts nothing and returns
// *NotOurs with all taken names.
func (a *Applier) Adopt(
	ctx context.Context, owner client.Object, live Live, content Content, ordered, independent []client.Object,
) ([]client.Object, error) {
	p := &pass{a, owner, live, content}
	_, adopted, err := p.claim(ctx, ordered, independent)
	return adopted, err
}

// claim compares all children before the first is written, and adopts orphans.
func (p *pass) claim(
	ctx context.Context, ordered, independent []client.Object,
) (children []*candidate, adopted []client.Object, err error) {
	for i, object := range slices.Concat(ordered, independent) {
		child := &candidate{object: object, isOrdered: i < len(ordered)}
		child.err = p.compare(ctx, child)
		children = append(children, child)
	}

	err = p.lookAhead(ctx, children[:len(ordered)])
	if err == nil {
		err = p.findOrphans(ctx, children)
	}
	if err == nil {
		err = p.taken(ctx, children)
	}
	if err == nil {
		adopted, err = p.adoptAll(ctx, children)
	}
	return children, adopted, err
}

// lookAhead reads the last ordered child from the API server before an earlier one is created. All
// earlier children are for the last one. Without it, a Service would select nothing, and could
// replace a Service of another client that was deleted because its name was taken.
func (p *pass) lookAhead(ctx context.Context, ordered []*candidate) error {
	if len(ordered) == 0 {
		return nil
	}

	last := ordered[len(ordered)-1]
	if !last.isMissing() || !slices.ContainsFunc(ordered[:len(ordered)-1], (*candidate).isMissing) {
		return nil
	}

	stored, err := p.holder(ctx, last)
	if stored != nil {
		return conflict(last.gvk, last.object, "the cache does not have it yet")
	}
	if IsNotOurs(err) == nil {
		return err
	}

	last.err = err
	return nil
}

// findOrphans reads the children whose names are taken by objects without a controller, and finds
// the orphans among them. It returns an error for an ordered child that cannot be read.
func (p *pass) findOrphans(ctx context.Context, children []*candidate) error {
	for _, child := range children {
		if taken := IsNotOurs(child.err); taken == nil || taken.Controller != "" {
			continue
		}
		child.orphan, child.err = p.holder(ctx, child)
		switch {
		case child.orphan == nil && child.err == nil:
			return conflict(child.gvk, child.object, "it changed a moment ago")
		case child.err != nil && IsNotOurs(child.err) == nil && (child.isOrdered || StartsOver(child.err)):
			return child.err
		}
	}
	return nil
}

// adoptAll adopts the orphans. An independent child does not stop the others.
func (p *pass) adoptAll(ctx context.Context, children []*candidate) (adopted []client.Object, err error) {
	orphans := slices.DeleteFunc(slices.Clone(children), func(child *candidate) bool { return child.orphan == nil })
	if len(orphans) == 0 {
		return nil, nil
	}
	if err := p.isAlive(ctx); err != nil {
		return nil, err
	}

	for _, child := range orphans {
		child.err = p.adopt(ctx, child)
		if child.err != nil && (child.isOrdered || StartsOver(child.err)) {
			return nil, child.err
		}
		if child.err == nil {
			adopted = append(adopted, child.orphan)
			p.note(child, child.orphan, unknown) // the limit of adoptions counts known children
		}
	}

	return adopted, nil
}

// holder returns the orphan that has the name of a child, or nil if the name is free or the child
// belongs to the owner. The error is *NotOurs if the name is taken.
func (p *pass) holder(ctx context.Context, child *candidate) (client.Object, error) {
	stored := emptyOf(child.object)
	err := p.Reader.Get(ctx, client.ObjectKeyFromObject(child.object), stored)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, child.failed("read", err)
	case metav1.IsControlledBy(stored, p.owner):
		return nil, nil
	}

	if err := p.refuse(ctx, child, stored); err != nil {
		return nil, err
	}
	return stored, nil
}

// taken returns *NotOurs with all taken names, or nil if no ordered child has one. It reads what
// the cache lacks, because the cache has only objects with the operator's labels.
func (p *pass) taken(ctx context.Context, children []*candidate) error {
	if !slices.ContainsFunc(children, func(child *candidate) bool { return child.isOrdered && child.isTaken() }) {
		return nil
	}

	var first *NotOurs
	for _, child := range children {
		if child.isMissing() {
			_, child.err = p.holder(ctx, child)
		}
		switch taken := IsNotOurs(child.err); {
		case !child.isTaken():
		case first == nil:
			first = taken
		default:
			first.Others = append(first.Others, taken)
		}
	}

	return first
}

// Confirm reads the owner from the API server before the first write to its children, once per
// owner and process. Without it, a process that starts with an old view of the cluster would write
// an old declaration, or one that the status reports as failed. Confirm returns a conflict if the
// stored owner has another spec or status than this one, or does not exist. It does nothing if
// ConfirmOwners is false.
func (a *Applier) Confirm(ctx context.Context, owner client.Object) error {
	key, isConfirmed := client.ObjectKeyFromObject(owner), false
	a.Memory.View(key, owner.GetUID(), func(r *Remembered) { isConfirmed = r.confirmed })
	if isConfirmed || !a.ConfirmOwners {
		return nil
	}

	err := a.requireOwner(ctx, owner, "the cache has an older version of it", func(stored client.Object) bool {
		return stored.GetGeneration() <= owner.GetGeneration() && sameStatus(stored, owner)
	})
	if err == nil {
		a.Memory.Update(owner, func(r *Remembered) { r.confirmed = true })
	}
	return err
}

// isAlive returns a conflict if the stored owner is another one or is being deleted. Call it after
// the orphans were read: the garbage collector removes owner references during a deletion with
// --cascade=orphan, and would delete a child that is adopted then. It does nothing if ConfirmOwners
// is false.
func (p *pass) isAlive(ctx context.Context) error {
	if !p.ConfirmOwners {
		return nil
	}
	return p.requireOwner(ctx, p.owner, "it was deleted a moment ago", func(stored client.Object) bool {
		return stored.GetDeletionTimestamp() == nil
	})
}

// requireOwner returns a conflict if the stored owner does not meet the condition.
func (a *Applier) requireOwner(
	ctx context.Context, owner client.Object, why string, condition func(stored client.Object) bool,
) error {
	gvk, err := apiutil.GVKForObject(owner, a.Client.Scheme())
	if err != nil {
		return fmt.Errorf("failed to find the kind of %s: %w", owner.GetName(), err)
	}

	stored := emptyOf(owner)
	err = a.Reader.Get(ctx, client.ObjectKeyFromObject(owner), stored)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("failed to read %s %q: %w", gvk.Kind, owner.GetName(), err)
	}
	if err != nil || stored.GetUID() != owner.GetUID() || !condition(stored) {
		return conflict(gvk, owner, why)
	}

	return nil
}

// sameStatus reports whether two objects of a kind have the same status, or none. A resourceVersion
// also changes with labels and annotations, which other clients may write at any time.
func sameStatus(a, b client.Object) bool {
	one, other := reflect.ValueOf(a).Elem().FieldByName("Status"), reflect.ValueOf(b).Elem().FieldByName("Status")
	return !one.IsValid() || equality.Semantic.DeepEqual(one.Interface(), other.Interface())
}
