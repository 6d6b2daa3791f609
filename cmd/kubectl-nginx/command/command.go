// Package command implements the commands of kubectl nginx.
package command

import (
	"context"
	"errors"
	"fmt"
	"net/url"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/klog/v2"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/cmd/kubectl-nginx/printer"
)

// Exit codes: those of kubectl, and those of kubectl diff for commands that compare.
const (
	exitError          = 1
	exitDifferences    = 1
	exitComparingError = 2
)

// comparing is the annotation of commands that exit with exitDifferences if they find differences.
const comparing = "comparing"

// Run runs the command in the arguments and returns the exit code: 0 for success, 1 after an error.
// plan and config return 1 if they found differences, and 2 after an error. It prints errors as
// kubectl does. All output goes through a printer.Writer.
func Run(ctx context.Context, args []string, streams genericiooptions.IOStreams, version string) int {
	klog.SetLogger(logr.Discard()) // client-go logs unescaped text to the terminal, and returns the errors too
	streams.Out, streams.ErrOut = printer.NewWriter(streams.Out), printer.NewWriter(streams.ErrOut)
	root := newRoot(&cli{IOStreams: streams, kube: genericclioptions.NewConfigFlags(true), version: version})
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errDiffer):
		return exitDifferences
	}

	_, _ = fmt.Fprintln(streams.ErrOut, message(err))
	if cmd.Annotations[comparing] != "" {
		return exitComparingError
	}

	return exitError
}

func newRoot(c *cli) *cobra.Command {
	root := &cobra.Command{
		Use:           "kubectl-nginx",
		Short:         "Show, preview, and change the NGINX instances of nginx-operator",
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl nginx"},
		Version:       c.version,
		SilenceErrors: true,
		SilenceUsage:  true,
	}

	root.SetIn(c.In)
	root.SetOut(c.Out)
	root.SetErr(c.ErrOut)
	c.kube.AddFlags(root.PersistentFlags())
	root.AddCommand(
		newStatus(c), newPlan(c), newLogs(c), newConfig(c), newTop(c), newRestart(c), newRollback(c), newPause(c, true), newPause(c, false),
		newMigrate(c),
	)

	addPermissions(root)
	return root
}

func message(err error) string {
	var status apierrors.APIStatus
	var unreachable *url.Error
	switch {
	case errors.As(err, &status) && status.Status().Reason != metav1.StatusReasonUnknown:
		return fmt.Sprintf("Error from server (%s): %v", status.Status().Reason, err)
	case errors.As(err, &status):
		return fmt.Sprintf("Error from server: %v", err)
	case meta.IsNoMatchError(err):
		return fmt.Sprintf("error: %v. Install nginx-operator, or select another cluster with --context", err)
	case errors.As(err, &unreachable):
		return fmt.Sprintf("Unable to connect to the server: %v", unreachable.Err)
	}

	return fmt.Sprintf("error: %v", err)
}

// errDiffer ends a command that found differences. It is not a failure.
var errDiffer = errors.New("there are differences")

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
