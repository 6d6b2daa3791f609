package command

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/example/nginx-operator/api/v1alpha2"
)

// errDiffer ends a command that found differences. It is not a failure.
var errDiffer = errors.New("there are differences")

// cli has the state that all commands share.
type cli struct {
	genericiooptions.IOStreams

	kube    *genericclioptions.ConfigFlags
	version string
}

// onInstance makes a command take the name of an instance. It calls the function with the instance.
func (c *cli) onInstance(cmd *cobra.Command, do func(ctx context.Context, connected *connection, object *v1alpha2.NginxOperator) error) {
	cmd.Args, cmd.ValidArgsFunction = exactlyOneName, c.completeNames
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		connected, err := c.connect(c.warn)
		if err != nil {
			return err
		}

		object, err := connected.instance(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		return do(cmd.Context(), connected, object)
	}
}

// exactlyOneName has the wording of kubectl.
func exactlyOneName(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("exactly one NAME is required, got %d. For help, run: %s --help", len(args), cmd.CommandPath())
	}
	return nil
}

// statusCommand returns the command that shows the reason of a problem.
func statusCommand(object *v1alpha2.NginxOperator) string {
	return fmt.Sprintf("kubectl nginx status %s -n %s", object.Name, object.Namespace)
}

func (c *cli) completeNames(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}

	var names []string
	connected, err := c.connect(func(string) {})
	if err == nil {
		err = connected.eachInstance(cmd.Context(), selection{}, func(object *v1alpha2.NginxOperator) error {
			names = append(names, object.Name)
			return nil
		})
	}

	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
