package apply

import (
	"context"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// Confirm reads the owner from the API server before the first write to its children, once per
// owner and process. Without it, a process that starts with an old view of the cluster would write
// an old declaration, or one that the status reports as failed. Confirm returns a conflict if the
// stored owner has another spec or status than this one, or does not exist. It does nothing if
// ConfirmOwners is false.
func (a *Applier) Confirm(ctx context.Context, owner client.Object) error {
	confirmed := false
	a.Memory.View(client.ObjectKeyFromObject(owner), owner.GetUID(), func(r *Remembered) { confirmed = r.confirmed })
	if !a.ConfirmOwners || confirmed {
		return nil
	}
	gvk, live, err := a.readOwner(ctx, owner)
	if err != nil {
		return err
	}
	if live == nil || live.GetUID() != owner.GetUID() || live.GetGeneration() > owner.GetGeneration() ||
		!sameStatus(live, owner) {
		return conflict(gvk, owner, "the cache has an older version of it")
	}
	a.Memory.Update(owner, func(r *Remembered) { r.confirmed = true })
	return nil
}

// sameStatus reports whether two objects of a kind have the same status, or none. A resourceVersion
// also changes with labels and annotations, which other clients may write at any time.
func sameStatus(a, b client.Object) bool {
	one, other := reflect.ValueOf(a).Elem().FieldByName("Status"), reflect.ValueOf(b).Elem().FieldByName("Status")
	return !one.IsValid() || equality.Semantic.DeepEqual(one.Interface(), other.Interface())
}

// readOwner reads an owner from the API server. It returns nil if the owner does not exist.
func (a *Applier) readOwner(ctx context.Context, owner client.Object) (schema.GroupVersionKind, client.Object, error) {
	gvk, err := apiutil.GVKForObject(owner, a.Client.Scheme())
	if err != nil {
		return gvk, nil, fmt.Errorf("failed to find kind of %s: %w", owner.GetName(), err)
	}
	live := emptyOf(owner)
	err = a.Reader.Get(ctx, client.ObjectKeyFromObject(owner), live)
	if apierrors.IsNotFound(err) {
		return gvk, nil, nil
	}
	if err != nil {
		return gvk, nil, fmt.Errorf("failed to read %s %q: %w", gvk.Kind, owner.GetName(), err)
	}
	return gvk, live, nil
}

// confirmUnlessNew is Confirm for a child that is not in the cache. An owner that never changed has
// no old declaration. If a child of this name exists anyway, its patch confirms the owner.
func (a *Applier) confirmUnlessNew(ctx context.Context, owner client.Object) error {
	if owner.GetGeneration() <= 1 {
		return nil
	}
	return a.Confirm(ctx, owner)
}
