package storagemigration

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/example/nginx-operator/pkg/denied"
)

const (
	// pageSize is the number of objects per list request. An object can have 1.5 MiB of metadata,
	// so the answer takes at most 75 MiB, and about the same again while it is decoded. The
	// operator may use 512 MiB.
	pageSize = 50
	// rewritesAtOnce is the number of concurrent writes.
	rewritesAtOnce = 4
	// hopelessAfter transient errors in a row point to the API server, not to the objects.
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

// rewriteProgress is for one generation of the CRD. A new leader starts over.
type rewriteProgress struct {
	// todo are objects that were listed, but not tried yet.
	todo []metav1.PartialObjectMetadata
	// next is the continue token of the next page, and listed is true after the last page.
	next   string
	listed bool
	// rewritten is the number of objects that are stored in the target version. failed are the
	// objects whose last write failed, and reported those that were reported as refused.
	rewritten        int
	failed, reported []refused
}

// rewrite continues where the last call ended: with the remaining objects of its page, then the
// remaining pages, and then the objects that failed in earlier calls. It tries each object at most
// once. It returns an error if it stops before it has tried all objects. Otherwise, p.failed has the
// objects that could not be rewritten.
func (r *rewriter) rewrite(ctx context.Context, p *rewriteProgress) error {
	earlier, inARow, logged := len(p.failed), 0, time.Now()
	for len(p.todo) > 0 || !p.listed || earlier > 0 {
		if len(p.todo) == 0 && !p.listed {
			if err := r.list(ctx, p); err != nil {
				return fmt.Errorf("failed to list the objects: %w", err)
			}
		} else if len(p.todo) == 0 {
			p.retry(earlier)
			earlier = 0
		}

		batch := p.todo[:min(len(p.todo), rewritesAtOnce)]
		p.todo = p.todo[len(batch):]
		for i, err := range r.each(ctx, batch) {
			if err == nil {
				p.rewritten++
			} else {
				p.failed = append(p.failed, refused{&batch[i], err})
			}
			if inARow++; !passing(err) {
				inARow = 0
			}
		}

		if err := ctx.Err(); err != nil {
			return err
		}
		if inARow >= hopelessAfter {
			return fmt.Errorf("the API server rejects all writes: %w", p.failed[len(p.failed)-1].err)
		}
		if time.Since(logged) > progressInterval {
			logged = time.Now()
			log.FromContext(ctx).Info("Rewriting objects", "rewritten", p.rewritten, "refused", len(p.failed))
		}
	}

	slices.SortFunc(p.failed, func(a, b refused) int { return strings.Compare(a.String(), b.String()) })
	return nil
}

func (p *rewriteProgress) retry(n int) {
	for _, f := range p.failed[:n] {
		p.todo = append(p.todo, *f.object)
	}
	p.failed = slices.Clone(p.failed[n:])
}

func (r *rewriter) list(ctx context.Context, p *rewriteProgress) error {
	page, err := r.page(ctx, pageSize, p.next)
	if apierrors.IsResourceExpired(err) && renewedToken(err) == "" {
		// The API server cannot continue, so only another list from the start can succeed.
		*p = rewriteProgress{reported: p.reported}
	}
	if err != nil {
		return err
	}

	p.todo, p.next, p.listed = page.Items, page.Continue, page.Continue == ""
	return nil
}

func (r *rewriter) each(ctx context.Context, objects []metav1.PartialObjectMetadata) []error {
	errs := make([]error, len(objects))
	var writes sync.WaitGroup
	for i := range objects {
		writes.Go(func() { errs[i] = r.one(ctx, &objects[i]) })
	}

	writes.Wait()
	return errs
}

// renewedToken returns the new continue token in the API server's error about an expired token, or
// "". It continues the list at the same object, with the objects as they are stored by then.
func renewedToken(err error) string {
	status := apierrors.APIStatus(nil)
	if !apierrors.IsResourceExpired(err) || !errors.As(err, &status) {
		return ""
	}
	return status.Status().Continue
}
