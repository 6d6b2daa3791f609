package apply

import (
	"context"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

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

// requireOwner reads an owner from the API server. It returns a conflict if the owner does not exist
// or does not meet the condition.
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
