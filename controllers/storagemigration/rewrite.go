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
	// pageSize is how many objects are asked for at a time, rewritesAtOnce how many are written. The API server's own flow
	// control tells the client to wait where that is too much.
	pageSize       = 500
	rewritesAtOnce = 4
	// hopelessAfter ends a reconcile after so many failures in a row that the API server is to blame for and not the objects.
	hopelessAfter = 20
	// progressInterval is how often a long rewrite says how far it is.
	progressInterval = 10 * time.Second
)

// rewriter stores objects anew as they are, which makes the API server encode them in the version that it stores now.
type rewriter struct {
	client client.Client
	kind   schema.GroupVersionKind
}

// refused is an object that could not be stored anew.
type refused struct {
	object *metav1.PartialObjectMetadata
	err    error
}

func (r refused) String() string {
	return fmt.Sprintf("%s: %v", client.ObjectKeyFromObject(r.object), r.err)
}

// source hands objects over, one at a time, until that returns an error.
type source func(ctx context.Context, each func(runtime.Object) error) error

// all is the source of every object in the cluster, page by page.
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

// only is the source of objects that were refused before.
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

// rewrite stores objects anew, and returns how many those are and which were refused. An error means that it did not get to
// the end of them.
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
	// What ended the writes ended the source as well, and says more.
	if err := group.Wait(); err != nil {
		return total, failed, err
	}
	slices.SortFunc(failed, func(a, b refused) int { return strings.Compare(a.String(), b.String()) })
	return total, failed, sourceErr
}

func (r *rewriter) page(ctx context.Context, options metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(r.kind.GroupVersion().WithKind(r.kind.Kind + "List"))
	err := r.client.List(ctx, list, &client.ListOptions{Limit: options.Limit, Continue: options.Continue})
	// Items of a list have no kind of their own.
	for i := range list.Items {
		list.Items[i].SetGroupVersionKind(r.kind)
	}
	return list, err
}

// one rewrites an object by a patch of its status that changes nothing. The right to do that is the operator's anyway, and
// nothing looks at the spec on the way, so an object that would be refused today can still be migrated. An object that
// changed or went meanwhile needs nothing: who wrote it wrote the version that is stored now.
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

// passing reports whether an error says more about the API server than about the object.
func passing(err error) bool {
	var status apierrors.APIStatus
	return err != nil && !errors.As(err, &status) || apierrors.IsInternalError(err) || apierrors.IsServerTimeout(err) ||
		apierrors.IsTimeout(err) || apierrors.IsTooManyRequests(err) || apierrors.IsServiceUnavailable(err)
}
