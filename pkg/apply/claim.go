package apply

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// candidate is a declared child with the known state of the stored child.
type candidate struct {
	child client.Object
	found comparison
	// orphan is the stored child if it has no controller, but is a child of the owner, or nil.
	orphan client.Object
	// err is why the child cannot be written: *NotOurs if its name is taken, or another error.
	err error
}

// isTaken reports whether the name of the child is taken by an object that is not about to be
// deleted.
func (c candidate) isTaken() bool {
	taken := IsNotOurs(c.err)
	return taken != nil && !taken.Predecessor
}

// Adopt makes the owner the controller of its orphans, and returns these. It changes nothing else.
// A declaration can depend on the stored children, so the caller must render the children again
// after an adoption. If the name of an ordered child is taken, Adopt adopts nothing and returns
// *NotOurs with all taken names.
func (a *Applier) Adopt(
	ctx context.Context, owner client.Object, live Live, content Content, ordered, independent []client.Object,
) ([]client.Object, error) {
	_, adopted, err := a.claim(ctx, owner, live, content, ordered, independent)
	return adopted, err
}

// claim returns the known state of all children before the first of them is written, and adopts
// orphans.
func (a *Applier) claim(
	ctx context.Context, owner client.Object, live Live, content Content, ordered, independent []client.Object,
) (children []candidate, adopted []client.Object, err error) {
	for _, child := range slices.Concat(ordered, independent) {
		found, err := a.compare(ctx, owner, live, child)
		children = append(children, candidate{child: child, found: found, err: err})
	}
	if err := a.lookAhead(ctx, owner, content, children[:len(ordered)]); err != nil {
		return nil, nil, err
	}
	if err := a.findOrphans(ctx, owner, content, children, len(ordered)); err != nil {
		return nil, nil, err
	}
	if err := a.taken(ctx, owner, content, children, len(ordered)); err != nil {
		return nil, nil, err
	}
	adopted, err = a.adoptAll(ctx, owner, children, len(ordered))
	return children, adopted, err
}

// findOrphans reads the children whose names are taken by objects without a controller, and finds
// the orphans among them. It returns an error for an ordered child that cannot be read.
func (a *Applier) findOrphans(ctx context.Context, owner client.Object, content Content, children []candidate, ordered int) error {
	for i := range children {
		one := &children[i]
		if taken := IsNotOurs(one.err); taken == nil || taken.Controller != "" {
			continue
		}
		one.orphan, one.err = a.holder(ctx, owner, content, one)
		switch {
		case one.orphan == nil && one.err == nil:
			return conflict(one.found.gvk, one.child, "it changed a moment ago")
		case one.err != nil && IsNotOurs(one.err) == nil && (i < ordered || StartsOver(one.err)):
			return one.err
		}
	}
	return nil
}

// adoptAll adopts the orphans, and returns these. An independent child that cannot be adopted does
// not stop the others.
func (a *Applier) adoptAll(
	ctx context.Context, owner client.Object, children []candidate, ordered int,
) (adopted []client.Object, err error) {
	isOrphan := func(one candidate) bool { return one.orphan != nil }
	if !slices.ContainsFunc(children, isOrphan) {
		return nil, nil
	}
	if err := a.isAlive(ctx, owner); err != nil {
		return nil, err
	}
	for i := range children {
		one := &children[i]
		if !isOrphan(*one) {
			continue
		}
		one.err = a.adopt(ctx, owner, one.orphan, one.found.gvk)
		if one.err != nil && (i < ordered || StartsOver(one.err)) {
			return nil, one.err
		}
		if one.err == nil {
			adopted = append(adopted, one.orphan)
			a.note(owner, one.orphan, one.found, unknown) // the limit of adoptions counts known children
		}
	}
	return adopted, nil
}

// lookAhead reads the last ordered child from the API server before an earlier one is created. All
// earlier children are for the last one. Without it, a Service would select nothing, and could
// replace a Service of another client that was deleted because its name was taken.
func (a *Applier) lookAhead(ctx context.Context, owner client.Object, content Content, ordered []candidate) error {
	isMissing := func(one candidate) bool { return one.err == nil && one.found.match == missing }
	if len(ordered) == 0 {
		return nil
	}
	last := &ordered[len(ordered)-1]
	if !isMissing(*last) || !slices.ContainsFunc(ordered[:len(ordered)-1], isMissing) {
		return nil
	}
	live, err := a.holder(ctx, owner, content, last)
	if live != nil {
		return conflict(last.found.gvk, last.child, "the cache does not have it yet")
	}
	if IsNotOurs(err) == nil {
		return err
	}
	last.err = err
	return nil
}

// holder returns the orphan that has the name of a child, or nil if the name is free or the child
// belongs to the owner. The error is *NotOurs if the name is taken.
func (a *Applier) holder(ctx context.Context, owner client.Object, content Content, of *candidate) (client.Object, error) {
	live := emptyOf(of.child)
	err := a.Reader.Get(ctx, client.ObjectKeyFromObject(of.child), live)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("failed to read %s %q: %w", of.found.gvk.Kind, of.child.GetName(), err)
	case metav1.IsControlledBy(live, owner):
		return nil, nil
	}
	if err := a.refuse(ctx, owner, content, of.found.gvk, of.child, live); err != nil {
		return nil, err
	}
	return live, nil
}

// taken returns *NotOurs with all taken names if the name of one of the ordered children is taken,
// or nil. It reads the children that are not in the cache, because the cache has only objects with
// the operator's labels.
func (a *Applier) taken(ctx context.Context, owner client.Object, content Content, children []candidate, ordered int) error {
	if !slices.ContainsFunc(children[:ordered], candidate.isTaken) {
		return nil
	}
	var first *NotOurs
	for i := range children {
		one := &children[i]
		if one.err == nil && one.found.match == missing {
			_, one.err = a.holder(ctx, owner, content, one)
		}
		switch found := IsNotOurs(one.err); {
		case !one.isTaken():
		case first == nil:
			first = found
		default:
			first.Others = append(first.Others, found)
		}
	}
	return first
}
