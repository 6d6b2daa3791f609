package apply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// match is the relation of a child to its declaration.
type match uint8

const (
	// unknown: the child was not compared since it or its declaration changed.
	unknown match = iota
	missing
	// waits and settled are results of Pending: the child counts, or does not although its
	// declaration is another one.
	waits
	settled
	asDeclared
)

// comparison has a declared child's kind and the known state of the stored child.
type comparison struct {
	gvk   schema.GroupVersionKind
	match match
	// uid is the UID of the child in the cache, or "" if the child is missing.
	uid types.UID
	// drifted is true if the child has changed since it was compared with the same declaration.
	drifted bool
	// declared is the fingerprint of the declaration.
	declared uint64
}

// compare makes the owner the controller of the child, and returns the known state of the stored
// child.
func (a *Applier) compare(ctx context.Context, owner client.Object, live Live, child client.Object) (comparison, error) {
	if err := controllerutil.SetControllerReference(owner, child, a.Client.Scheme()); err != nil {
		return comparison{}, fmt.Errorf("failed to own child %s: %w", child.GetName(), err)
	}
	gvk, err := apiutil.GVKForObject(child, a.Client.Scheme())
	if err != nil {
		return comparison{}, fmt.Errorf("failed to find kind of %s: %w", child.GetName(), err)
	}
	out := comparison{gvk: gvk, declared: fingerprint(child)}
	cached, err := a.find(ctx, live, child)
	switch {
	case err != nil:
		return comparison{}, fmt.Errorf("failed to read %s %q: %w", gvk.Kind, child.GetName(), err)
	case cached == nil:
		out.match = missing
		return out, nil
	case !metav1.IsControlledBy(cached, owner):
		return out, notOurs(gvk, child, cached)
	}
	out.uid = cached.GetUID()
	known, found := a.Memory.find(client.ObjectKeyFromObject(owner), owner.GetUID(), out.uid)
	if found && known.declared == out.declared && out.declared != unreadable {
		if out.drifted = !known.isOf(cached); !out.drifted {
			out.match = known.match
		}
	}
	return out, nil
}

// find returns a child as it was read before, or else from the cache. It returns nil if the child
// does not exist.
func (a *Applier) find(ctx context.Context, live Live, child client.Object) (client.Object, error) {
	if live != nil {
		if found, known := live.Find(child); known {
			return found, nil
		}
	}
	found := emptyOf(child)
	err := a.Client.Get(ctx, client.ObjectKeyFromObject(child), found)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return found, err
}

// emptyOf returns an empty object of the same Go type.
func emptyOf(child client.Object) client.Object {
	return reflect.New(reflect.TypeOf(child).Elem()).Interface().(client.Object)
}

// backoff returns the time for which a child is not changed, because another client keeps changing
// it.
func (a *Applier) backoff(owner client.Object, found comparison) time.Duration {
	if !found.drifted {
		return 0
	}
	return a.spend(owner, found.uid)
}

// spend takes a comparison of a child, or returns the time to wait if none is left.
func (a *Applier) spend(owner client.Object, child types.UID) (wait time.Duration) {
	a.Memory.Update(owner, func(r *Remembered) { wait = r.spend(child, time.Now()) })
	return wait
}

// look compares a child without writing it. It reports whether Apply would leave the child as it
// is, and remembers the result. With wasApplied, it compares the child with its last declaration.
func (a *Applier) look(
	ctx context.Context, owner client.Object, content Content, child client.Object, found comparison, wasApplied bool,
) (bool, error) {
	live, err := a.read(ctx, owner, content, child, found)
	if err == nil {
		err = verify(ctx, content, found.gvk, child, live)
	}
	if IsForged(err) != nil {
		return false, nil //nolint:nilerr // a forged child differs
	}
	if err != nil {
		return false, err
	}
	declared, err := declaration(child)
	if err != nil {
		return false, fmt.Errorf("failed to encode %s %q: %w", found.gvk.Kind, child.GetName(), err)
	}
	last := sanitizeRecord(live, a.recordOf(live))
	wanted := declared
	if wasApplied && string(last) != noRecord {
		if wanted, err = withReplicas(last, declared); err != nil {
			return false, fmt.Errorf("failed to decode %s %q: %w", found.gvk.Kind, child.GetName(), err)
		}
	}
	patch, patchType, err := difference(a.abbreviate(live), last, wanted)
	same := err == nil && patch == nil
	if err == nil && patch != nil {
		same, err = a.isUndone(ctx, patchType, patch, live, wanted)
		switch {
		case err != nil && (StartsOver(err) || ctx.Err() != nil):
			return false, fmt.Errorf("failed to try a patch of %s %q: %w", found.gvk.Kind, child.GetName(), err)
		case err != nil:
			return false, nil //nolint:nilerr // for example, a webhook does not answer; the next reconcile tries again
		}
	}
	switch {
	case !same:
		a.note(owner, live, found, waits)
	case a.recordOf(live) == string(a.record(declared)):
		a.note(owner, live, found, asDeclared)
	default:
		a.note(owner, live, found, settled)
	}
	return same, nil
}

// withReplicas returns the last declaration with the replicas of the current one, which has the
// live number while an autoscaler sets it.
func withReplicas(last, declared []byte) ([]byte, error) {
	var was, is map[string]any
	if err := errors.Join(json.Unmarshal(last, &was), json.Unmarshal(declared, &is)); err != nil {
		return nil, err
	}
	replicas, found, err := unstructured.NestedFieldNoCopy(is, "spec", "replicas")
	if !found || err != nil {
		return last, err
	}
	if err := unstructured.SetNestedField(was, replicas, "spec", "replicas"); err != nil {
		return nil, err
	}
	return json.Marshal(was)
}

// read reads the whole child from the API server. It returns a conflict if the child is gone or an
// orphan, or if the declaration was made from another version of the child.
func (a *Applier) read(
	ctx context.Context, owner client.Object, content Content, child client.Object, found comparison,
) (client.Object, error) {
	live := emptyOf(child)
	stale := func(why string) error { return conflict(found.gvk, child, why) }
	err := a.Reader.Get(ctx, client.ObjectKeyFromObject(child), live)
	switch {
	case apierrors.IsNotFound(err):
		return nil, stale("it was deleted a moment ago")
	case err != nil:
		return nil, fmt.Errorf("failed to read %s %q: %w", found.gvk.Kind, child.GetName(), err)
	case !metav1.IsControlledBy(live, owner):
		if err := a.refuse(ctx, owner, content, found.gvk, child, live); err != nil {
			return nil, err
		}
		return nil, stale("it has no owner reference")
	}
	if from := child.GetResourceVersion(); from != "" && from != live.GetResourceVersion() {
		return nil, stale("it changed after the declaration was made from it")
	}
	return live, nil
}

// conflict returns the error for a declaration that was made from an old state.
func conflict(gvk schema.GroupVersionKind, child client.Object, why string) error {
	return apierrors.NewConflict(schema.GroupResource{Group: gvk.Group, Resource: gvk.Kind}, child.GetName(), errors.New(why))
}

// note remembers the relation of a child to its declaration.
func (a *Applier) note(owner, live client.Object, found comparison, result match) {
	last := look{child: hashOf(live.GetUID()), stored: fingerprint(live), declared: found.declared, match: result}
	a.Memory.Update(owner, func(r *Remembered) { r.note(last) })
}
