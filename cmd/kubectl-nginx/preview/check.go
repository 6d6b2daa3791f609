package preview

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
)

// Declared returns the child objects of a stored NginxOperator, or the reasons that block it.
func (p *Planner) Declared(ctx context.Context, object *v1alpha2.NginxOperator) ([]client.Object, []v1alpha2.Blocker, error) {
	reconciler, _, err := p.reconciler(ctx, &dryRuns{Client: p.Client}, object)
	if err != nil {
		return nil, nil, err
	}
	return reconciler.Declared(ctx, object)
}

// Check returns the reasons why the operator cannot apply the spec of an NginxOperator, including
// errors of the API server.
func (p *Planner) Check(ctx context.Context, object *v1alpha2.NginxOperator) ([]v1alpha2.Blocker, error) {
	reconciler, _, err := p.reconciler(ctx, &dryRuns{Client: p.Client}, object)
	if err != nil {
		return nil, err
	}
	found, err := reconciler.Preview(ctx, object, func() {})
	return append(found.Blockers, found.Failures...), err
}
