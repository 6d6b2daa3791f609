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
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// rewriteProgress is the progress of a rewrite of all objects, for one generation of the CRD. It
// survives errors, so the next call of rewrite continues. A new leader starts over.
type rewriteProgress struct {
	// todo are objects that were listed, but not tried yet.
	todo []metav1.PartialObjectMetadata
	// next is the continue token of the next page, and listed is true after the last page.
	next   string
	listed bool
	// rewritten is the number of objects that are stored in the target version. failed are the
	// objects whose last write failed.
	rewritten int
	failed    []refused
	// reported are the objects that were reported as refused.
	reported []refused
}

// rewrite continues where the last call ended: with the remaining objects of its page, then the
// remaining pages, and then the objects that failed in earlier calls. It tries each object at most
// once. It returns an error if it stops early, and nil if it has tried all objects. In that case,
// p.failed has the objects that could not be rewritten.
func (r *rewriter) rewrite(ctx context.Context, p *rewriteProgress) error {
	earlier := len(p.failed)
	inARow, logged := 0, time.Now()
	var last error
	record := func(object *metav1.PartialObjectMetadata, err error) {
		if err == nil {
			p.rewritten++
		} else {
			p.failed, last = append(p.failed, refused{object, err}), err
		}
		if inARow++; !passing(err) {
			inARow = 0
		}
		if time.Since(logged) > progressInterval {
			logged = time.Now()
			log.FromContext(ctx).Info("Rewriting objects", "rewritten", p.rewritten, "refused", len(p.failed))
		}
	}

	for len(p.todo) > 0 || !p.listed || earlier > 0 {
		if len(p.todo) == 0 && !p.listed {
			if err := r.list(ctx, p); err != nil {
				return fmt.Errorf("failed to list the objects: %w", err)
			}
		} else if len(p.todo) == 0 {
			p.retry(earlier)
			earlier = 0
		}

		tried := r.each(ctx, p.todo, record, func() bool { return inARow < hopelessAfter })
		p.todo = p.todo[tried:]
		if err := ctx.Err(); err != nil {
			return err
		}
		if inARow >= hopelessAfter {
			return fmt.Errorf("the API server stores nothing at the moment: %w", last)
		}
	}
	slices.SortFunc(p.failed, func(a, b refused) int { return strings.Compare(a.String(), b.String()) })
	return nil
}

// retry moves the first n failed objects to the objects that are not tried yet.
func (p *rewriteProgress) retry(n int) {
	for _, f := range p.failed[:n] {
		p.todo = append(p.todo, *f.object)
	}
	p.failed = slices.Clone(p.failed[n:])
}

// list reads the next page of objects.
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

// each writes objects concurrently, while more returns true, and returns how many it tried. It
// waits for the writes that it has started, because the result of a canceled write is unknown, and
// the object would have to be written twice. It does not call record and more concurrently.
func (r *rewriter) each(
	ctx context.Context, objects []metav1.PartialObjectMetadata, record func(*metav1.PartialObjectMetadata, error), more func() bool,
) (tried int) {
	var mu sync.Mutex
	goOn := func() bool {
		mu.Lock()
		defer mu.Unlock()
		return ctx.Err() == nil && more()
	}
	var group errgroup.Group
	group.SetLimit(rewritesAtOnce)
	for tried < len(objects) && goOn() {
		object := &objects[tried]
		tried++
		group.Go(func() error {
			err := r.one(ctx, object)
			mu.Lock()
			defer mu.Unlock()
			record(object, err)
			return nil
		})
	}
	_ = group.Wait() // no function returns an error
	return tried
}

// renewedToken returns the new continue token that the API server sends in the error about an
// expired token, or "" if it sends no new token. The new token continues the list at the same
// object, with the objects as they are stored by then.
func renewedToken(err error) string {
	status := apierrors.APIStatus(nil)
	if !apierrors.IsResourceExpired(err) || !errors.As(err, &status) {
		return ""
	}
	return status.Status().Continue
}
