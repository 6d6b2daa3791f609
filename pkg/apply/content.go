package apply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"maps"
	"reflect"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// seed makes fingerprints unpredictable, so no client can create two contents with the same
// fingerprint. Fingerprints of another process have another seed.
var seed = maphash.MakeSeed()

// unreadable never counts as equal, so a child that cannot be encoded is always compared.
const unreadable = 0

// revisionAnnotation is written by the Deployment controller.
const revisionAnnotation = "deployment.kubernetes.io/revision"

// Stamp stores the fingerprint of a whole child in its selfLink, which the API server leaves empty.
// Cache transforms call it before they remove fields, so that a reconcile still detects a changed
// child. It does not change a child that has a stamp.
func Stamp(child client.Object) {
	if child.GetSelfLink() == "" {
		child.SetSelfLink(strconv.FormatUint(fingerprint(child), base))
	}
}

const base = 36

func stampOf(cached client.Object) uint64 {
	stamp := cached.GetSelfLink()
	if stamp == "" {
		return fingerprint(cached)
	}

	hash, err := strconv.ParseUint(stamp, base, 64)
	if err != nil {
		return unreadable
	}
	return hash
}

// fingerprint returns a hash of a declared or stored child. The hash ignores fields that change
// although no client changes the child. The cost is proportional to the size.
func fingerprint(child client.Object) uint64 {
	object := content(child)
	encode := func() ([]byte, error) { return json.Marshal(object) }
	// Protocol buffers are cheaper. Kinds of other API groups do not support them.
	if encoder, ok := object.(interface{ Marshal() ([]byte, error) }); ok {
		encode = encoder.Marshal
	}

	raw, err := encode()
	if err != nil {
		return unreadable
	}
	return maphash.Bytes(seed, raw)
}

// content returns a read-only copy of an object. The copy has no status, no metadata that the API
// server and controllers set, and no data of an immutable ConfigMap or of a ControllerRevision.
func content(object client.Object) client.Object {
	copied := emptyOf(object)
	fields := reflect.ValueOf(copied).Elem()
	fields.Set(reflect.ValueOf(object).Elem())
	if status := fields.FieldByName("Status"); status.IsValid() {
		status.SetZero()
	}

	copied.SetManagedFields(nil)
	copied.SetResourceVersion("")
	copied.SetGeneration(0)
	copied.SetSelfLink("")
	if _, hasRevision := copied.GetAnnotations()[revisionAnnotation]; hasRevision {
		annotations := maps.Clone(copied.GetAnnotations())
		delete(annotations, revisionAnnotation)
		copied.SetAnnotations(annotations)
	}

	switch copied := copied.(type) {
	case *corev1.ConfigMap:
		if ptr.Deref(copied.Immutable, false) {
			copied.Data, copied.BinaryData = nil, nil
		}
	case *appsv1.ControllerRevision:
		copied.Data = runtime.RawExtension{}
	}

	return copied
}

// Content has the data of immutable children. A declaration can leave the data out: it never
// changes, so it is needed only to create a child, and to verify a child that this process has not
// compared before.
type Content interface {
	// Fill adds the content before a creation, or returns a conflict if it no longer matches.
	Fill(ctx context.Context, child client.Object) error
	// Holds reports whether the stored child has the content. It returns true for kinds that are
	// not immutable. It must not change the child or the stored child.
	Holds(ctx context.Context, child, live client.Object) (bool, error)
}

// Forged is the error for an immutable child whose content differs from its declaration. Its data
// cannot be corrected: the child was deleted, and another client created one with the same name and
// owner. Child is the stored child.
type Forged struct {
	Kind  string
	Child client.Object
}

// Error names the child.
func (e *Forged) Error() string {
	return fmt.Sprintf("another client replaced %s %q by one with other content", e.Kind, e.Child.GetName())
}

// IsForged returns the *Forged in the error's chain, or nil.
func IsForged(err error) *Forged {
	forged, _ := errors.AsType[*Forged](err)
	return forged
}

func (p *pass) verify(ctx context.Context, child *candidate, stored client.Object) error {
	if p.content == nil {
		return nil
	}

	holds, err := p.content.Holds(ctx, child.object, stored)
	if err == nil && !holds {
		err = &Forged{Kind: child.gvk.Kind, Child: stored}
	}
	return err
}
