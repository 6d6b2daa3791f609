package command

import (
	"context"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/resource"

	"github.com/example/nginx-operator/cmd/kubectl-nginx/preview"
	"github.com/example/nginx-operator/cmd/kubectl-nginx/printer"
)

func newPlan(c *cli) *cobra.Command {
	var format output
	planner := &preview.Planner{}
	var from files
	cmd := &cobra.Command{
		Use:         "plan -f FILENAME",
		Annotations: map[string]string{comparing: "true"},
		Short:       "Preview what applying a manifest would change, and whether it replaces Pods",
		Long: `Preview what "kubectl apply -f FILENAME" would change, without writing anything. The preview has
the warnings and errors of admission, the changed fields, the child objects that the operator
would create, change, and delete, and whether running Pods are replaced. ConfigMaps and Secrets
in the same manifests are included.

The command applies the objects in a dry run. It computes the child objects with the operator's
code, and applies them in a dry run too, with your permissions.

The exit status is that of kubectl diff: 0 if nothing changes, 1 if something changes, 2 after
an error or if admission rejects an object.`,
		Example: "  kubectl nginx plan -f web.yaml\n  cat web.yaml | kubectl nginx plan -f -",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := format.check(); err != nil {
				return err
			}
			return c.plan(cmd.Context(), planner, from, &format)
		},
	}

	format.add(cmd)
	from.add(cmd)
	flags := cmd.Flags()
	flags.BoolVar(&planner.Apply.ServerSide, "server-side", false, "apply on the server, as kubectl apply --server-side does")
	flags.StringVar(&planner.Apply.FieldManager, "field-manager", "kubectl", "name of the field manager, with --server-side")
	flags.BoolVar(&planner.Apply.ForceConflicts, "force-conflicts", false, "overwrite fields of other field managers, with --server-side")
	flags.StringVar(&planner.DefaultImage, "default-image", "",
		"the operator's default image, for instances without spec.image (default: the image in use, or the image of this release)")
	return cmd
}

func (c *cli) plan(ctx context.Context, planner *preview.Planner, from files, format *output) error {
	var warnings []string
	connected, err := c.connect(func(text string) { warnings = append(warnings, text) })
	if err != nil {
		return err
	}

	builder := resource.NewBuilder(c.kube).Unstructured().NamespaceParam(connected.namespace).DefaultNamespace()
	manifests, err := from.read(builder, connected.enforced)
	if err != nil {
		return err
	}

	planner.Client = connected
	plan, err := planner.Plan(ctx, manifests)
	if err != nil {
		for _, warning := range warnings {
			c.warn(warning)
		}
		return err
	}

	plan.Warnings = warnings
	printed, err := format.print(c.Out, plan)
	if !printed {
		err = plan.Render(c.Out, printer.PainterOf(c.Out))
	}
	if err == nil && plan.Differs() {
		err = errDiffer
	}

	return err
}
