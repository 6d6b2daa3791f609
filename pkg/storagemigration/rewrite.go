package storagemigration

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/pkg/denied"
)

const (
	// pageSize is the number of objects per list request. An object can have 1.5 MiB of metadata,
	// so the answer takes at most 75 MiB, and about the same again while it is decoded. The
	// operator may use 512 MiB.
	pageSize = 50
	// rewritesAtOnce is the number of concurrent writes.
	rewritesAtOnce = 4
	// hopelessAfter is the number of consecutive transient errors after which a rewrite stops. So
	// many point to the API server and not to the objects.
	hopelessAfter = 20
	// progressInterval is the interval of the progress messages in the log.
	progressInterval = 10 * time.Second
)

// rewriter writes objects without a change, so that they are stored in the current version.
type rewriter struct {
	client client.Client
	kind   schema.GroupVersionKind
	// namespace is the namespace of the objects, or "" for all namespaces.
	namespace string
}

// refused is an object that could not be rewritten.
type refused struct {
	object *metav1.PartialObjectMetadata
	err    error
}

func (r refused) String() string {
	return fmt.Sprintf("%s: %v", client.ObjectKeyFromObject(r.object), r.err)
}

// page reads a page of objects with their identities and resource versions only. The token is ""
// for the first page. If it has expired, page continues with the API server's new token.
func (r *rewriter) page(ctx context.Context, limit int64, token string) (*metav1.PartialObjectMetadataList, error) {
	read := func(token string) (*metav1.PartialObjectMetadataList, error) {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(r.kind.GroupVersion().WithKind(r.kind.Kind + "List"))
		return list, r.client.List(ctx, list, &client.ListOptions{Namespace: r.namespace, Limit: limit, Continue: token})
	}

	list, err := read(token)
	if renewed := renewedToken(err); renewed != "" {
		list, err = read(renewed)
	}
	for i := range list.Items {
		list.Items[i] = identity(r.kind, &list.Items[i])
	}
	return list, err
}

// identity returns the fields of an object that a rewrite and an Event need. Other metadata can have
// hundreds of kilobytes. The items of a list have no apiVersion and kind.
func identity(kind schema.GroupVersionKind, object *metav1.PartialObjectMetadata) metav1.PartialObjectMetadata {
	identified := metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: object.Namespace, Name: object.Name, UID: object.UID, ResourceVersion: object.ResourceVersion,
	}}
	identified.SetGroupVersionKind(kind)
	return identified
}

// one rewrites an object with a patch of its status that changes nothing, for which the operator has
// the permission, and which skips the validation of the spec. A changed or deleted object needs no
// rewrite, because a change is stored in the current storage version. A denied patch rewrites
// nothing, whatever its code.
func (r *rewriter) one(ctx context.Context, object *metav1.PartialObjectMetadata) error {
	patch := fmt.Appendf(nil, `{"metadata":{"resourceVersion":%q}}`, object.ResourceVersion)
	target := &metav1.PartialObjectMetadata{TypeMeta: object.TypeMeta}
	target.Namespace, target.Name = object.Namespace, object.Name
	err := r.client.Status().Patch(ctx, target, client.RawPatch(types.MergePatchType, patch))
	if (apierrors.IsConflict(err) || apierrors.IsNotFound(err)) && !denied.Is(err) {
		return nil
	}
	return err
}

// passing reports whether an error is about the API server rather than about the object.
func passing(err error) bool {
	var status apierrors.APIStatus
	return err != nil && !errors.As(err, &status) || apierrors.IsInternalError(err) || apierrors.IsServerTimeout(err) ||
		apierrors.IsTimeout(err) || apierrors.IsTooManyRequests(err) || apierrors.IsServiceUnavailable(err)
}
