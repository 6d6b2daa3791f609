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
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/cmd/kubectl-nginx/preview"
	"github.com/example/nginx-operator/cmd/kubectl-nginx/tree"
	"github.com/example/nginx-operator/internal/nginxconf"
)

func newConfig(c *cli) *cobra.Command {
	var differs bool
	planner := &preview.Planner{}
	cmd := &cobra.Command{
		Use:   "config NAME",
		Short: "Show the nginx configuration as it runs",
		Long: `Show the nginx configuration of the running Pods, as nginx -T does: the files of the immutable
ConfigMap that they mount. During a rollout there is more than one.

With --diff, show how it differs from what the NginxOperator declares: what waits while it is
paused, blocked or taken back, or rolls out. The exit status is then that of kubectl diff.`,
		Example: "  kubectl nginx config web\n  kubectl nginx config web --diff",
	}
	c.onInstance(cmd, func(ctx context.Context, connected *connection, object *v1alpha2.NginxOperator) error {
		planner.Client = connected
		return c.showConfig(ctx, connected, planner, object, differs)
	})
	cmd.Flags().BoolVar(&differs, "diff", false, "show the difference to what is declared")
	cmd.Flags().StringVar(&planner.DefaultImage, "default-image", "", "the operator's image for instances that name none, with --diff")
	return cmd
}

func (c *cli) showConfig(
	ctx context.Context, connected *connection, planner *preview.Planner, object *v1alpha2.NginxOperator, differs bool,
) error {
	running, err := connected.configs(ctx, object)
	if err != nil {
		return err
	}
	declared := ""
	if differs {
		if declared, err = declaredConfig(ctx, planner, object); err != nil {
			return err
		}
	}
	found := false
	for _, configMap := range slices.Sorted(maps.Keys(running)) {
		text, err := connected.configText(ctx, object, configMap)
		if err != nil {
			return err
		}
		pods := strings.Join(running[configMap], ", ")
		if !differs {
			text = fmt.Sprintf("# ConfigMap %s, Pods %s\n%s", configMap, pods, text)
		} else if text, err = preview.Diff("running in "+pods, text, "declared", declared); err != nil {
			return err
		}
		found = found || text != ""
		if _, err := fmt.Fprint(c.Out, preview.Colored(text, tree.Painter{On: differs && colored(c.Out)})); err != nil {
			return err
		}
	}
	if differs && found {
		return errDiffer
	}
	return nil
}

// configs returns the names of the ConfigMaps that Pods have their configuration from, with these Pods.
func (c *connection) configs(ctx context.Context, object *v1alpha2.NginxOperator) (map[string][]string, error) {
	pods, err := c.pods(ctx, object)
	if err != nil {
		return nil, err
	}
	out := map[string][]string{}
	for i := range pods {
		ended := pods[i].Status.Phase == corev1.PodFailed || pods[i].Status.Phase == corev1.PodSucceeded
		if config := preview.ConfigOf(&pods[i].Spec); config != "" && !ended {
			out[config] = append(out[config], pods[i].Name)
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("NginxOperator %q has no Pods; see kubectl nginx status %s", object.Name, object.Name)
	}
	return out, nil
}

// configText returns the files of a ConfigMap with an instance's configuration.
func (c *connection) configText(ctx context.Context, object *v1alpha2.NginxOperator, name string) (string, error) {
	configMap := &corev1.ConfigMap{}
	if err := c.Get(ctx, client.ObjectKey{Namespace: object.Namespace, Name: name}, configMap); err != nil {
		return "", err
	}
	return dump(configMap.Data), nil
}

// dump returns the files of a configuration as nginx -T does.
func dump(files map[string]string) string {
	var out strings.Builder
	for _, name := range slices.Sorted(maps.Keys(files)) {
		fmt.Fprintf(&out, "# configuration file %s:\n%s\n", path.Join(nginxconf.Directory, name), strings.TrimSuffix(files[name], "\n"))
	}
	return out.String()
}

// declaredConfig returns the configuration that an instance declares, as dump does.
func declaredConfig(ctx context.Context, planner *preview.Planner, object *v1alpha2.NginxOperator) (string, error) {
	children, blockers, err := planner.Declared(ctx, object)
	if err != nil {
		return "", err
	}
	if len(blockers) > 0 {
		return "", fmt.Errorf("what NginxOperator %q declares cannot be applied: %s: %s", object.Name, blockers[0].Reason, blockers[0].Message)
	}
	for _, child := range children {
		configMap, ok := child.(*corev1.ConfigMap)
		if _, isConfig := files(configMap)[nginxconf.MainFile]; ok && isConfig {
			return dump(configMap.Data), nil
		}
	}
	return "", fmt.Errorf("NginxOperator %q declares no configuration", object.Name)
}

func files(configMap *corev1.ConfigMap) map[string]string {
	if configMap == nil {
		return nil
	}
	return configMap.Data
}
