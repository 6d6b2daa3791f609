package apply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/pkg/denied"
)

// patch compares the declaration with the stored child, writes the difference, and returns the
// stored child.
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

// withoutRecord returns the content of an object without the record of its declaration.
func (a *Applier) withoutRecord(object client.Object) client.Object {
	object = content(object)
	annotations := maps.Clone(object.GetAnnotations())
	delete(annotations, a.Annotation)
	object.SetAnnotations(annotations)
	return object
}
