package storagemigration

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/pager"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

const (
	// pageSize is the number of objects per list request, and rewritesAtOnce the number of
	// concurrent writes. The API server's flow control throttles the client if that is too much.
	pageSize       = 500
	rewritesAtOnce = 4
	// hopelessAfter is the number of consecutive transient errors after which a rewrite stops. So
	// many point to the API server and not to the objects.
	hopelessAfter = 20
	// progressInterval is the interval of the progress messages in the log during a long rewrite.
	progressInterval = 10 * time.Second
)

// rewriter writes objects without a change, so that the API server encodes them in its current
// storage version.
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

// source passes objects to the function, one at a time, until the function returns an error.
type source func(ctx context.Context, each func(runtime.Object) error) error

// all is the source of all objects in the cluster, page by page.
func (r *rewriter) all(ctx context.Context, each func(runtime.Object) error) error {
	lister := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return r.page(ctx, options)
	})
	lister.PageSize = pageSize
	if err := lister.EachListItem(ctx, metav1.ListOptions{}, each); err != nil {
		return fmt.Errorf("failed to list the objects: %w", err)
	}
	return nil
}

// only is the source of objects whose rewrite failed before.
func only(objects []refused) source {
	return func(_ context.Context, each func(runtime.Object) error) error {
		for _, o := range objects {
			if err := each(o.object); err != nil {
				return err
			}
		}
		return nil
	}
}

// rewrite rewrites the objects of a source. It returns the number of objects that it tried and the
// objects that it could not rewrite. An error means that it stopped before the end of the source.
func (r *rewriter) rewrite(ctx context.Context, from source) (total int, failed []refused, err error) {
	var mu sync.Mutex
	inARow, reported := 0, time.Now()
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(rewritesAtOnce)
	sourceErr := from(ctx, func(item runtime.Object) error {
		object, ok := item.(*metav1.PartialObjectMetadata)
		if !ok {
			return fmt.Errorf("a list of metadata has a %T", item)
		}
		group.Go(func() error {
			err := r.one(ctx, object)
			mu.Lock()
			defer mu.Unlock()
			total++
			if err != nil {
				failed = append(failed, refused{object, err})
			}
			if inARow++; !passing(err) {
				inARow = 0
			}
			if inARow >= hopelessAfter {
				return fmt.Errorf("the API server stores nothing at the moment: %w", err)
			}
			if time.Since(reported) > progressInterval {
				reported = time.Now()
				log.FromContext(ctx).Info("Rewriting objects", "rewritten", total-len(failed), "refused", len(failed))
			}
			return nil
		})
		return ctx.Err()
	})
	// A failed write also cancels the source. Its error is more specific than the error of the
	// source.
	if err := group.Wait(); err != nil {
		return total, failed, err
	}
	slices.SortFunc(failed, func(a, b refused) int { return strings.Compare(a.String(), b.String()) })
	return total, failed, sourceErr
}

func (r *rewriter) page(ctx context.Context, options metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(r.kind.GroupVersion().WithKind(r.kind.Kind + "List"))
	err := r.client.List(ctx, list, &client.ListOptions{Namespace: r.namespace, Limit: options.Limit, Continue: options.Continue})
	// The items of a list have no apiVersion and kind.
	for i := range list.Items {
		list.Items[i].SetGroupVersionKind(r.kind)
	}
	return list, err
}

// one rewrites an object with a patch of its status that changes nothing. The operator needs the
// permission for that anyway. The patch skips the validation of the spec, so an object that would
// be rejected today can still be migrated. A changed or deleted object needs no rewrite, because a
// change is stored in the current storage version.
func (r *rewriter) one(ctx context.Context, object *metav1.PartialObjectMetadata) error {
	patch := fmt.Appendf(nil, `{"metadata":{"resourceVersion":%q}}`, object.ResourceVersion)
	target := &metav1.PartialObjectMetadata{TypeMeta: object.TypeMeta}
	target.Namespace, target.Name = object.Namespace, object.Name
	err := r.client.Status().Patch(ctx, target, client.RawPatch(types.MergePatchType, patch))
	if apierrors.IsConflict(err) {
		return nil
	}
	return client.IgnoreNotFound(err)
}

// passing reports whether an error is about the API server rather than about the object.
func passing(err error) bool {
	var status apierrors.APIStatus
	return err != nil && !errors.As(err, &status) || apierrors.IsInternalError(err) || apierrors.IsServerTimeout(err) ||
		apierrors.IsTimeout(err) || apierrors.IsTooManyRequests(err) || apierrors.IsServiceUnavailable(err)
}
