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

// AsReconciler is reconcile.AsReconciler, and calls forget if the object does not exist. Reconciles
// of one name never run concurrently, so nothing is remembered of the object after that.
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
