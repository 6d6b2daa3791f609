package nginxoperator

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/optional"
)

// optionalChild is a child whose kind not every cluster has.
type optionalChild struct {
	kind string
	// at is the field that declares it, and wayOut what to do where the cluster does not have the kind.
	at     *field.Path
	wayOut string
	// empty returns an empty object of the kind.
	empty      func() client.Object
	isDeclared func(*v1alpha2.NginxOperatorSpec) bool
	desired    func(*v1alpha2.NginxOperator, inputs) client.Object
}

// optionalChildren are all of them, in the order in which they are created.
var optionalChildren = []optionalChild{httpRouteChild, podMonitorChild, prometheusRuleChild}

// missingKinds says for the optional kinds that the cluster does not have why not.
func (r *Reconciler) missingKinds() map[string]string {
	out := map[string]string{}
	for kind, api := range r.Optional {
		if problem := api.Problem(); problem != "" {
			out[kind] = problem
		}
	}
	return out
}

// desiredOptional returns the children of kinds that the cluster has.
func desiredOptional(object *v1alpha2.NginxOperator, in inputs) []client.Object {
	var out []client.Object
	for _, child := range optionalChildren {
		if child.isDeclared(&object.Spec) && in.missing[child.kind] == "" {
			out = append(out, child.desired(object, in))
		}
	}
	return out
}

// missingFailures tells which children of a declaration are not there because the cluster does not have their kinds. Pods serve all the
// same.
func missingFailures(applied *declaration) []failure {
	if applied == nil {
		return nil
	}
	var out []failure
	for _, child := range optionalChildren {
		if missing := applied.in.missing[child.kind]; missing != "" && child.isDeclared(&applied.object.Spec) {
			message := fmt.Sprintf("%s: %s, so there is no %s: %s", child.at, missing, child.kind, child.wayOut)
			out = append(out, failure{v1alpha2.ReasonAPIMissing, message})
		}
	}
	return out
}

// declaring returns what makes a request for every object that declares a child of an optional kind.
func (r *Reconciler) declaring(child optionalChild) optional.Users {
	return func(ctx context.Context) []reconcile.Request {
		list := &v1alpha2.NginxOperatorList{}
		if err := r.Client.List(ctx, list, client.UnsafeDisableDeepCopy, client.DisableReadYourWritesConsistency); err != nil {
			log.FromContext(ctx).Error(err, "Failed to find who declares an optional kind", "kind", child.kind)
			return nil
		}
		var out []reconcile.Request
		for i := range list.Items {
			if child.isDeclared(&list.Items[i].Spec) {
				out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
			}
		}
		return out
	}
}
