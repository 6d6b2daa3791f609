package apply

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

type match uint8

const (
	// unknown: the child was not compared since it or its declaration changed.
	unknown match = iota
	missing
	// waits and settled are results of Pending: the child counts, or does not.
	waits
	settled
	asDeclared
)

// compare sets the owner of the child, and adds the known state of the stored child.
func (p *pass) compare(ctx context.Context, child *candidate) (err error) {
	if err := controllerutil.SetControllerReference(p.owner, child.object, p.Client.Scheme()); err != nil {
		return fmt.Errorf("failed to set the owner of child %s: %w", child.object.GetName(), err)
	}
	if child.gvk, err = apiutil.GVKForObject(child.object, p.Client.Scheme()); err != nil {
		return fmt.Errorf("failed to find the kind of %s: %w", child.object.GetName(), err)
	}

	child.declared = fingerprint(child.object)

	cached, err := p.find(ctx, child.object)
	switch {
	case err != nil:
		return child.failed("read", err)
	case cached == nil:
		child.match = missing
		return nil
	case !metav1.IsControlledBy(cached, p.owner):
		return notOurs(child, cached)
	}

	child.uid = cached.GetUID()
	last, isKnown := p.Memory.find(client.ObjectKeyFromObject(p.owner), p.owner.GetUID(), child.uid)
	if isKnown && last.declared == child.declared && child.declared != unreadable {
		if child.drifted = !last.isOf(cached); !child.drifted {
			child.match = last.match
		}
	}

	return nil
}

// find returns a child that was read before, or that of the cache, or nil.
func (p *pass) find(ctx context.Context, object client.Object) (client.Object, error) {
	if p.live != nil {
		if stored, known := p.live.Find(object); known {
			return stored, nil
		}
	}

	stored := emptyOf(object)
	err := p.Client.Get(ctx, client.ObjectKeyFromObject(object), stored)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return stored, err
}

func emptyOf(object client.Object) client.Object {
	return reflect.New(reflect.TypeOf(object).Elem()).Interface().(client.Object)
}

// backoff returns the time to wait, because another client keeps changing the child.
func (p *pass) backoff(child *candidate) time.Duration {
	if !child.drifted {
		return 0
	}
	return p.spend(child.uid)
}

func (p *pass) spend(child types.UID) (wait time.Duration) {
	p.Memory.Update(p.owner, func(r *Remembered) { wait = r.spend(child, time.Now()) })
	return wait
}

// look compares a child without writing it. It reports whether Apply would leave the child as it
// is, and remembers the result. With wasApplied, it compares the child with its last declaration.
func (p *pass) look(ctx context.Context, child *candidate, wasApplied bool) (same bool, err error) {
	stored, declared, err := p.read(ctx, child)
	if IsForged(err) != nil {
		return false, nil //nolint:nilerr // a forged child differs
	}
	if err != nil {
		return false, err
	}

	last, wanted := sanitizeRecord(stored, p.recordOf(stored)), declared
	if wasApplied && string(last) != noRecord {
		if wanted, err = withReplicas(last, child.object); err != nil {
			return false, child.failed("decode", err)
		}
	}

	patch, patchType, err := difference(p.abbreviate(stored), last, wanted)
	same = err == nil && len(patch) == 0
	if len(patch) > 0 {
		same, err = p.isUndone(ctx, patchType, patch, stored, wanted)
		switch {
		case err != nil && (StartsOver(err) || ctx.Err() != nil):
			return false, child.failed("dry-run a patch of", err)
		case err != nil:
			return false, nil //nolint:nilerr // for example, a webhook does not answer; the next reconcile tries again
		}
	}

	switch {
	case !same:
		p.note(child, stored, waits)
	case p.recordOf(stored) == string(p.record(declared)):
		p.note(child, stored, asDeclared)
	default:
		p.note(child, stored, settled)
	}

	return same, nil
}

// withReplicas sets the current replicas, which can be those of an autoscaler.
func withReplicas(last []byte, object client.Object) ([]byte, error) {
	deployment, ok := object.(*appsv1.Deployment)
	if !ok || deployment.Spec.Replicas == nil {
		return last, nil
	}
	return jsonpatch.MergePatch(last, fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, *deployment.Spec.Replicas))
}

// read reads the whole child from the API server, and encodes its declaration. It returns a
// conflict if the child is gone or an orphan, or if the declaration was made from another version
// of the child, and *Forged if the child does not have its content.
func (p *pass) read(ctx context.Context, child *candidate) (stored client.Object, declared []byte, err error) {
	stale := func(why string) error { return conflict(child.gvk, child.object, why) }
	stored = emptyOf(child.object)
	err = p.Reader.Get(ctx, client.ObjectKeyFromObject(child.object), stored)
	switch from := child.object.GetResourceVersion(); {
	case apierrors.IsNotFound(err):
		return nil, nil, stale("it was deleted a moment ago")
	case err != nil:
		return nil, nil, child.failed("read", err)
	case !metav1.IsControlledBy(stored, p.owner):
		return nil, nil, cmp.Or(p.refuse(ctx, child, stored), stale("it has no owner reference"))
	case from != "" && from != stored.GetResourceVersion():
		return nil, nil, stale("it changed after the declared child was computed from it")
	}

	if err := p.verify(ctx, child, stored); err != nil {
		return nil, nil, err
	}
	if declared, err = declaration(child.object); err != nil {
		return nil, nil, child.failed("encode", err)
	}

	return stored, declared, nil
}

func conflict(gvk schema.GroupVersionKind, object client.Object, why string) error {
	resource := schema.GroupResource{Group: gvk.Group, Resource: gvk.Kind}
	return apierrors.NewConflict(resource, object.GetName(), errors.New(why))
}

func (p *pass) note(child *candidate, stored client.Object, result match) {
	last := look{child: hashOf(stored.GetUID()), stored: fingerprint(stored), declared: child.declared, match: result}
	p.Memory.Update(p.owner, func(r *Remembered) { r.note(last) })
}
