package apply

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Applied is the result of ApplyAll.
type Applied struct {
	// RequeueAfter is the time until the next call of ApplyAll, because another client keeps
	// changing a child. It is 0 if no child waits.
	RequeueAfter time.Duration
	// Failures are the errors of independent children, in the order of these children.
	Failures []Failure
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
func (a *Applier) ApplyAll(
	ctx context.Context, owner client.Object, content Content, ordered, independent []client.Object,
) (Applied, error) {
	var out Applied
	uids := make([]types.UID, 0, len(ordered)+len(independent))

	for _, child := range ordered {
		found, wait, err := a.applyOne(ctx, owner, content, child)
		if err != nil {
			return Applied{}, err
		}
		out.RequeueAfter = max(out.RequeueAfter, wait)
		uids = append(uids, found.uid)
	}

	for _, child := range independent {
		found, wait, err := a.applyOne(ctx, owner, content, child)
		if StartsOver(err) || ctx.Err() != nil {
			return Applied{}, err
		}
		if err != nil {
			out.Failures = append(out.Failures, Failure{Child: child, Err: err})
		}
		out.RequeueAfter = max(out.RequeueAfter, wait)
		uids = append(uids, found.uid)
	}

	a.memory.keep(owner, uids)
	return out, nil
}

// applyOne writes one child, unless another client keeps changing it. Then it does not change the
// child and returns the remaining time of the back-off.
func (a *Applier) applyOne(
	ctx context.Context, owner client.Object, content Content, child client.Object,
) (found comparison, wait time.Duration, err error) {
	if found, err = a.compare(ctx, owner, child); err != nil {
		return found, 0, err
	}
	if wait = a.backoff(owner, found); wait > 0 {
		return found, wait, nil
	}
	uid, err := a.bring(ctx, owner, content, child, found)
	if err == nil {
		found.uid = uid
	}
	return found, 0, err
}

// StartsOver reports whether an error means that the declaration comes from an old state of the
// cluster. The owner is reconciled again then, and its status does not report the error. The API
// server does not support the creation of a custom resource while its CustomResourceDefinition is
// being deleted.
func StartsOver(err error) bool {
	return apierrors.IsConflict(err) || meta.IsNoMatchError(err) || apierrors.IsMethodNotSupported(err)
}
