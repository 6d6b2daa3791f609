package apply

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
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

// Failure is an independent child that could not be written.
type Failure struct {
	// Child is the declared child.
	Child client.Object
	// Err is why it could not be written.
	Err error
}

// ApplyAll writes the ordered children as Apply does. Then it writes each independent child, even
// if other independent children fail. The error is the first error of the ordered children. It is
// the error of an independent child if the reconcile has to start over: a conflict, a kind that is
// no longer served, or the end of the context.
//
// If the name of an ordered child is taken, the error has all taken names. Before the first child
// is created, the last ordered child is read, so nothing is created while its name is taken. If
// there are orphans, ApplyAll adopts them, writes nothing else, and returns a conflict.
func (a *Applier) ApplyAll(
	ctx context.Context, owner client.Object, live Live, content Content, ordered, independent []client.Object,
) (Applied, error) {
	children, adopted, err := a.claim(ctx, owner, live, content, ordered, independent)
	if err != nil {
		return Applied{}, err
	}
	if len(adopted) > 0 {
		return Applied{}, apierrors.NewConflict(schema.GroupResource{}, owner.GetName(), errors.New("children were adopted"))
	}
	var out Applied
	uids := make([]types.UID, 0, len(children))

	for i := range children[:len(ordered)] {
		one := &children[i]
		if err := a.applyOne(ctx, owner, content, one, &out); err != nil {
			one.err = err
			return Applied{Written: out.Written}, cmp.Or(a.taken(ctx, owner, content, children, len(ordered)), err)
		}
		uids = append(uids, one.found.uid)
	}

	for i := range children[len(ordered):] {
		one := &children[len(ordered)+i]
		err := a.applyOne(ctx, owner, content, one, &out)
		if StartsOver(err) || ctx.Err() != nil {
			return Applied{Written: out.Written}, err
		}
		if err != nil {
			out.Failures = append(out.Failures, Failure{Child: one.child, Err: err})
		}
		uids = append(uids, one.found.uid)
	}

	a.Memory.Update(owner, func(r *Remembered) {
		r.keep(uids)
		for _, one := range children {
			if manager, left := r.contest(one.found.uid, time.Now()); left > 0 {
				out.Contested = append(out.Contested, Contested{Child: one.child, Manager: manager, Left: left})
			}
		}
	})
	return out, nil
}

// applyOne writes one child that is not as declared, and adds it to the result. If another client
// keeps changing the child, it adds the remaining time of the back-off instead.
func (a *Applier) applyOne(ctx context.Context, owner client.Object, content Content, one *candidate, out *Applied) error {
	if one.err != nil || one.found.match == asDeclared {
		return one.err
	}
	if wait := a.backoff(owner, one.found); wait > 0 {
		out.RequeueAfter = max(out.RequeueAfter, wait)
		return nil
	}
	stored, err := a.bring(ctx, owner, content, one.child, one.found)
	if err == nil {
		out.Written = append(out.Written, stored)
		one.found.uid, one.found.match = stored.GetUID(), asDeclared
	}
	return err
}

// StartsOver reports whether an error means that the declaration comes from an old state of the
// cluster. The owner is reconciled again then, and its status does not report the error. The API
// server does not support the creation of a custom resource while its CustomResourceDefinition is
// being deleted. Admission can deny a request with the same codes.
func StartsOver(err error) bool {
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
