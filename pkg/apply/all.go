package apply

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/pkg/denied"
)

// Applied is the result of ApplyAll.
type Applied struct {
	// Written are the children that were written or read. An error does not undo them.
	Written []client.Object
	// RequeueAfter is the time until the next call of ApplyAll, because another client keeps
	// changing a child. It is 0 if no child waits.
	RequeueAfter time.Duration
	// Failures are the errors of independent children, in the order of these children.
	Failures []Failure
	// Contested are the children that another client keeps changing, in the order of the children.
	Contested []Contested
}

// Failure is a declared independent child that could not be written, and why.
type Failure struct {
	Child client.Object
	Err   error
}

// ApplyAll writes the ordered children as Apply does. Then it writes each independent child, even
// if other independent children fail. The error is the first error of the ordered children. It is
// the error of an independent child if the reconcile has to start over (StartsOver), or at the end
// of the context.
//
// If the name of an ordered child is taken, the error has all taken names. Before the first child
// is created, the last ordered child is read, so nothing is created while its name is taken. If
// there are orphans, ApplyAll adopts them, writes nothing else, and returns a conflict.
func (a *Applier) ApplyAll(
	ctx context.Context, owner client.Object, live Live, content Content, ordered, independent []client.Object,
) (Applied, error) {
	p := &pass{a, owner, live, content}
	children, adopted, err := p.claim(ctx, ordered, independent)
	if err == nil && len(adopted) > 0 {
		err = conflict(schema.GroupVersionKind{}, owner, "children were adopted")
	}
	if err != nil {
		return Applied{}, err
	}

	var applied Applied
	for _, child := range children {
		err := p.apply(ctx, child, &applied)
		switch {
		case err == nil:
		case child.isOrdered:
			child.err = err
			return Applied{Written: applied.Written}, cmp.Or(p.taken(ctx, children), err)
		case StartsOver(err) || ctx.Err() != nil:
			return Applied{Written: applied.Written}, err
		default:
			applied.Failures = append(applied.Failures, Failure{Child: child.object, Err: err})
		}
	}

	a.Memory.Update(owner, func(r *Remembered) {
		r.keep(children)
		for _, child := range children {
			if manager, left := r.contest(child.uid, time.Now()); left > 0 {
				applied.Contested = append(applied.Contested, Contested{Child: child.object, Manager: manager, Left: left})
			}
		}
	})

	return applied, nil
}

// apply writes one child that is not as declared, and adds it to the result. If another client
// keeps changing the child, it adds the remaining time of the back-off instead.
func (p *pass) apply(ctx context.Context, child *candidate, applied *Applied) error {
	if child.err != nil || child.match == asDeclared {
		return child.err
	}
	if wait := p.backoff(child); wait > 0 {
		applied.RequeueAfter = max(applied.RequeueAfter, wait)
		return nil
	}

	var stored client.Object
	var err error
	if child.match == missing {
		stored, err = p.create(ctx, child)
	}
	if stored == nil && err == nil {
		stored, err = p.patch(ctx, child)
	}
	if err == nil {
		applied.Written = append(applied.Written, stored)
		child.uid, child.match = stored.GetUID(), asDeclared
	}

	return err
}

// StartsOver reports whether an error means that the declaration comes from an old state of the
// cluster: a conflict, or a kind that is no longer served. The owner is reconciled again then, and
// its status does not report the error. Admission can deny a request with the same codes.
func StartsOver(err error) bool {
	// The API server does not support a create while a CustomResourceDefinition is being deleted.
	isOld := apierrors.IsConflict(err) || apierrors.IsMethodNotSupported(err) || isUnserved(err)
	return isOld && !denied.Is(err)
}

// isUnserved reports whether an error of the API server means that it no longer serves a kind.
// Either the API server does not know the path, or it rejects a create with an error that only the
// message identifies (apiextensions-apiserver, pkg/apiserver/customresource_handler.go).
func isUnserved(err error) bool {
	return apierrors.IsNotFound(err) && apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse) ||
		apierrors.IsForbidden(err) && strings.Contains(err.Error(), "custom resource definition is terminating")
}

// patch writes the difference to the stored child, and returns it.
func (p *pass) patch(ctx context.Context, child *candidate) (client.Object, error) {
	live, declared, err := p.read(ctx, child)
	if err != nil {
		return nil, err
	}

	isWritten, rival, err := p.write(ctx, child, live, declared)
	if err != nil {
		return nil, child.failed("patch", err)
	}

	p.note(child, live, asDeclared)
	if isWritten && child.drifted {
		p.Memory.Update(p.owner, func(r *Remembered) { r.corrected(live.GetUID(), rival, time.Now()) })
	}
	if isWritten {
		p.wrote(ctx, child.gvk, live, VerbPatch)
	}

	return live, nil
}

// write changes the live object to the declaration, and reports whether it sent a request. If the
// request corrects a drift, the rival is the field manager of the client whose change it undoes.
func (p *pass) write(
	ctx context.Context, child *candidate, live client.Object, declared []byte,
) (isWritten bool, rival string, err error) {
	recorded := p.recordOf(live)
	last, isCurrent := []byte(recorded), recorded == string(p.record(declared))
	if !isCurrent { // another client may have written the record
		last = sanitizeRecord(live, recorded)
	}

	patch, patchType, err := difference(p.abbreviate(live), last, declared)
	if err == nil && len(patch) == 0 && isCurrent {
		return false, "", nil
	}
	if err := p.Confirm(ctx, p.owner); err != nil {
		return false, "", err
	}
	if child.drifted {
		rival = p.rivalOf(live, patch)
	}
	if err == nil {
		err = p.send(ctx, patchType, patch, live, declared)
	}

	// If another client changed or removed the key of a list element, for example its port, the
	// merge results in two elements with the same name, or fails. Then replace whole lists. If the
	// API server rejects that too, the record lists fields that cannot be removed. Then ignore the
	// record, and write the current declaration only.
	for _, record := range [][]byte{last, []byte(noRecord)} {
		if !errors.Is(err, errNotMerged) && !isRefused(err) {
			break
		}
		if patch, err = replacing(p.abbreviate(live), record, declared); err == nil {
			err = p.send(ctx, types.MergePatchType, patch, live, declared)
		}
	}

	return err == nil, rival, err
}

// isRefused reports whether the API server's own validation rejected the content of a write. For
// two ports with the same node port, only the message shows that
// (pkg/registry/core/service/storage/alloc.go). A denial by admission is no reason to write
// something else: the denied change must stay visible and be retried.
func isRefused(err error) bool {
	if err == nil || denied.Is(err) {
		return false
	}
	return apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || strings.Contains(err.Error(), "duplicate nodePort")
}

// send sends a patch with the record of the declaration. The live object gets the response. The UID
// and the resourceVersion are preconditions, so that the patch applies to this version of this
// object only. Otherwise a change between the read and the patch would be remembered as declared.
func (a *Applier) send(
	ctx context.Context, patchType types.PatchType, patch map[string]any, live client.Object, declared []byte,
	options ...client.PatchOption,
) error {
	object := &unstructured.Unstructured{Object: map[string]any{}}
	maps.Copy(object.Object, patch)
	object.SetUID(live.GetUID())
	object.SetResourceVersion(live.GetResourceVersion())
	err := unstructured.SetNestedField(object.Object, string(a.record(declared)), "metadata", "annotations", a.Annotation)
	if err != nil {
		return fmt.Errorf("failed to encode: %w", err)
	}

	raw, err := json.Marshal(object.Object)
	if err != nil {
		return fmt.Errorf("failed to encode: %w", err)
	}

	return a.Client.Patch(ctx, live, client.RawPatch(patchType, raw), append(options, a.FieldOwner)...)
}

// isUndone reports whether a patch would leave the live object as it is, because admission changes
// what the patch declares. Only the API server knows that, so it is asked with a dry run. A refused
// patch counts as one that changes the object.
func (a *Applier) isUndone(
	ctx context.Context, patchType types.PatchType, patch map[string]any, live client.Object, declared []byte,
) (bool, error) {
	// The response is decoded into an empty object: decoding retains the keys of maps.
	patched := emptyOf(live)
	patched.SetNamespace(live.GetNamespace())
	patched.SetName(live.GetName())
	patched.SetUID(live.GetUID())
	patched.SetResourceVersion(live.GetResourceVersion())
	err := a.send(ctx, patchType, patch, patched, declared, client.DryRunAll, client.DisableReadYourWritesConsistency)
	if isRefused(err) || apierrors.IsForbidden(err) || denied.Is(err) {
		return false, nil
	}

	return err == nil && equality.Semantic.DeepEqual(a.withoutRecord(live), a.withoutRecord(patched)), err
}

func (a *Applier) withoutRecord(object client.Object) client.Object {
	object = content(object)
	annotations := maps.Clone(object.GetAnnotations())
	delete(annotations, a.Annotation)
	object.SetAnnotations(annotations)
	return object
}
