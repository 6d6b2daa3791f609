package apply

import (
	"cmp"
	"context"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/pkg/denied"
)

// Applied is the result of ApplyAll.
type Applied struct {
	// Written are the children that were written or read, as the API server returned them. An error
	// does not undo them.
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
