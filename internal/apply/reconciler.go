package apply

import (
	"context"
	"fmt"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// AsReconciler is reconcile.AsReconciler with forget, which is called when an object is gone. Reconciles of one name follow each
// other, so none can remember anything after that.
func AsReconciler[T client.Object](
	reader client.Reader, inner reconcile.ObjectReconciler[T], forget func(types.NamespacedName),
) reconcile.Reconciler {
	return reconcile.Func(func(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
		owner := reflect.New(reflect.TypeFor[T]().Elem()).Interface().(T)
		err := reader.Get(ctx, request.NamespacedName, owner)
		if apierrors.IsNotFound(err) {
			forget(request.NamespacedName)
			return reconcile.Result{}, nil
		}
		if err != nil {
			return reconcile.Result{}, fmt.Errorf("failed to read %T: %w", owner, err)
		}
		return inner.Reconcile(ctx, owner)
	})
}
