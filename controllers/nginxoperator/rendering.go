package nginxoperator

import (
	"cmp"
	"context"
	"strings"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/live"
	"github.com/example/nginx-operator/internal/operand"
	"github.com/example/nginx-operator/internal/record"
)

// renderChildren returns the children of a declaration for the live state. The suffix is that of
// the ConfigMaps, or "" for the suffix of the live Deployment.
func (r *Reconciler) renderChildren(
	ctx context.Context, object *v1alpha2.NginxOperator, state live.State, of *record.Declaration, suffix string,
) (out record.Rendering, err error) {
	made := *of
	out = record.Rendering{Declaration: &made}
	made.Inputs.Attempt = of.Inputs.Attempt || record.HasFailed(&object.Status, of.Revision.Name)
	made.Inputs.Missing, made.Inputs.Record = r.missingKinds(), strings.TrimPrefix(of.Revision.Name, record.Name(object, ""))
	made.Inputs.Deployment = state.Deployment()
	made.Inputs.Suffix = cmp.Or(suffix, operand.SuffixOf(made.Inputs.Deployment))
	if made.Inputs.Running, err = state.Running(); err != nil {
		return out, err
	}
	out = record.NewRendering(&made)
	if err = r.store(state).Carry(ctx, object, &out); err != nil {
		return out, err
	}
	out.Children, err = operand.Children(made.Object, made.Inputs)
	return out, err
}
