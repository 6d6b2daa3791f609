package command

import (
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/cli-runtime/pkg/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/cmd/kubectl-nginx/preview"
	"github.com/example/nginx-operator/cmd/kubectl-nginx/printer"
	"github.com/example/nginx-operator/internal/nginxconf"
)

func newConfig(c *cli) *cobra.Command {
	var differs bool
	planner := &preview.Planner{}
	cmd := &cobra.Command{
		Use:         "config NAME",
		Annotations: map[string]string{comparing: "true"},
		Short:       "Show the running nginx configuration",
		Long: `Show the nginx configuration of the running Pods in the format of nginx -T. It comes from the
immutable ConfigMap that the Pods mount. During a rollout, Pods can run different
configurations, and the command shows all of them.

With --diff, show the difference between the running configuration and the spec. They differ
during a rollout, after a rollback, while the spec cannot be used, and while the instance is
paused.

The exit status is that of kubectl diff: 0 if nothing differs, 1 if something differs, 2 after
an error.`,
		Example: "  kubectl nginx config web\n  kubectl nginx config web --diff",
	}

	c.onInstance(cmd, func(ctx context.Context, connected *connection, object *v1alpha2.NginxOperator) error {
		planner.Client = connected
		return c.showConfig(ctx, connected, planner, object, differs)
	})

	cmd.Flags().BoolVar(&differs, "diff", false, "show the difference between the running configuration and the spec")
	cmd.Flags().StringVar(&planner.DefaultImage, "default-image", "",
		"the operator's default image, for instances without spec.image; with --diff")
	return cmd
}

func (c *cli) showConfig(
	ctx context.Context, connected *connection, planner *preview.Planner, object *v1alpha2.NginxOperator, differs bool,
) error {
	running, err := connected.configs(ctx, object)
	if err != nil {
		return err
	}

	declared, paint := "", printer.Painter{}
	if differs {
		paint = printer.PainterOf(c.Out)
		if declared, err = declaredConfig(ctx, planner, object); err != nil {
			return err
		}
	}

	isEqual := true
	for _, name := range slices.Sorted(maps.Keys(running)) {
		configMap := &corev1.ConfigMap{}
		if err := connected.Get(ctx, client.ObjectKey{Namespace: object.Namespace, Name: name}, configMap); err != nil {
			return err
		}

		text, pods := dump(configMap), strings.Join(running[name], ", ")
		if !differs {
			text = fmt.Sprintf("# ConfigMap %s, Pods %s\n%s", name, pods, text)
		} else if text, err = preview.Diff("running in "+pods, text, "declared", declared); err != nil {
			return err
		}

		isEqual = isEqual && text == ""
		if _, err := fmt.Fprint(c.Out, preview.Colored(text, paint)); err != nil {
			return err
		}
	}

	if differs && !isEqual {
		return errDiffer
	}

	return nil
}

// configs returns the Pods of an instance by the name of the ConfigMap with their configuration.
func (c *connection) configs(ctx context.Context, object *v1alpha2.NginxOperator) (map[string][]string, error) {
	pods, err := c.pods(ctx, object)
	if err != nil {
		return nil, err
	}

	running := map[string][]string{}
	for i := range pods {
		ended := pods[i].Status.Phase == corev1.PodFailed || pods[i].Status.Phase == corev1.PodSucceeded
		if config := preview.ConfigOf(&pods[i].Spec); config != "" && !ended {
			running[config] = append(running[config], pods[i].Name)
		}
	}

	if len(running) == 0 {
		return nil, noPods(object)
	}
	return running, nil
}

func noPods(object *v1alpha2.NginxOperator) error {
	return fmt.Errorf("NginxOperator %q has no Pods. For the reason, run: %s", object.Name, statusCommand(object))
}

func dump(configMap *corev1.ConfigMap) string {
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(configMap.Data)) {
		content := strings.TrimSuffix(configMap.Data[name], "\n")
		fmt.Fprintf(&text, "# configuration file %s:\n%s\n", path.Join(nginxconf.Directory, name), content)
	}
	return text.String()
}

func declaredConfig(ctx context.Context, planner *preview.Planner, object *v1alpha2.NginxOperator) (string, error) {
	children, blockers, err := planner.Declared(ctx, object)
	if err != nil {
		return "", err
	}
	if len(blockers) > 0 {
		return "", fmt.Errorf("cannot apply the spec of NginxOperator %q: %s: %s", object.Name,
			printer.Line(blockers[0].Reason), printer.Line(blockers[0].Message))
	}

	for _, child := range children {
		if configMap, ok := child.(*corev1.ConfigMap); ok && configMap.Data[nginxconf.MainFile] != "" {
			return dump(configMap), nil
		}
	}

	return "", fmt.Errorf("the operator renders no configuration for NginxOperator %q (a defect): please report it", object.Name)
}

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
