package nginxoperator

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/cached"
	"github.com/example/nginx-operator/internal/operand"
	"github.com/example/nginx-operator/internal/optional"
)

// missingKinds returns the reason for each optional kind that is not installed.
func (r *Reconciler) missingKinds() map[string]string {
	out := map[string]string{}
	for kind, api := range r.Optional {
		if problem := api.Problem(); problem != "" {
			out[kind] = problem
		}
	}
	return out
}

// declaring returns a function that requests a reconcile of each object that declares a child of an
// optional kind. An object of which the cache has only a part may declare it.
func (r *Reconciler) declaring(child operand.OptionalKind) optional.Users {
	return func(ctx context.Context) []reconcile.Request {
		list := &v1alpha2.NginxOperatorList{}
		if err := r.Client.List(ctx, list, client.UnsafeDisableDeepCopy, client.DisableReadYourWritesConsistency); err != nil {
			log.FromContext(ctx).Error(err, "Failed to find who declares an optional kind", "kind", child.Kind)
			return nil
		}
		var out []reconcile.Request
		for i := range list.Items {
			if cached.IsPart(&list.Items[i]) || child.IsDeclared(&list.Items[i].Spec) {
				out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
			}
		}
		return out
	}
}
