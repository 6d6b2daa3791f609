// Package command has the commands of kubectl nginx.
package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/operatormanager"
)

// Exit codes are those of kubectl diff.
const (
	exitDifferences = 1
	exitError       = 2
)

// fieldOwner is the field manager of what restart, pause, resume and rollback write.
const fieldOwner = client.FieldOwner("kubectl-nginx")

// errDiffer ends a command that found differences, and is no failure.
var errDiffer = errors.New("there are differences")

// cli is what all commands share.
type cli struct {
	genericiooptions.IOStreams

	kube    *genericclioptions.ConfigFlags
	version string
}

// Run does what the arguments say and returns the exit code: 0, 1 where plan or config --diff found differences, 2 after an error,
// which it has printed as kubectl does.
func Run(ctx context.Context, args []string, streams genericiooptions.IOStreams, version string) int {
	root := newRoot(&cli{IOStreams: streams, kube: genericclioptions.NewConfigFlags(true), version: version})
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errDiffer):
		return exitDifferences
	}
	_, _ = fmt.Fprintln(streams.ErrOut, message(err))
	return exitError
}

func newRoot(c *cli) *cobra.Command {
	root := &cobra.Command{
		Use:           "kubectl-nginx",
		Short:         "Show, preview and change the NGINX instances of nginx-operator",
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
	return root
}

// message says what went wrong as kubectl does.
func message(err error) string {
	var status apierrors.APIStatus
	var unreachable *url.Error
	switch {
	case errors.As(err, &status) && status.Status().Reason != metav1.StatusReasonUnknown:
		return fmt.Sprintf("Error from server (%s): %v", status.Status().Reason, err)
	case errors.As(err, &status):
		return fmt.Sprintf("Error from server: %v", err)
	case meta.IsNoMatchError(err):
		return fmt.Sprintf("error: %v: is nginx-operator installed?", err)
	case errors.As(err, &unreachable):
		return fmt.Sprintf("Unable to connect to the server: %v", unreachable.Err)
	}
	return fmt.Sprintf("error: %v", err)
}

// connection is a cluster and a namespace in it.
type connection struct {
	client.Client

	config    *rest.Config
	namespace string
	// enforced: the namespace was asked for, so an object that names another one is an error.
	enforced bool
}

// connect prepares the requests to the cluster of the kubeconfig flags; warnings of the API server go to the handler.
func (c *cli) connect(warnings rest.WarningHandler) (*connection, error) {
	config, err := c.kube.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	config.WarningHandler = warnings
	config.QPS = -1 // the API server's priority and fairness holds back whoever asks too much
	mapper, err := c.kube.ToRESTMapper()
	if err != nil {
		return nil, err
	}
	namespace, enforced, err := c.kube.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return nil, err
	}
	found, err := client.New(config, client.Options{Scheme: operatormanager.NewScheme(), Mapper: mapper})
	return &connection{found, config, namespace, enforced}, err
}

// warnings prints what the API server warns of, each once.
func (c *cli) warnings() rest.WarningHandler {
	return rest.NewWarningWriter(c.ErrOut, rest.WarningWriterOptions{Deduplicate: true, Color: colored(c.ErrOut)})
}

// instance reads an instance.
func (c *connection) instance(ctx context.Context, name string) (*v1alpha2.NginxOperator, error) {
	out := &v1alpha2.NginxOperator{}
	err := c.Get(ctx, client.ObjectKey{Namespace: c.namespace, Name: name}, out)
	return out, err
}

// onInstance has a command take the name of an instance, and do something with it.
func (c *cli) onInstance(cmd *cobra.Command, do func(ctx context.Context, connected *connection, object *v1alpha2.NginxOperator) error) {
	cmd.Args, cmd.ValidArgsFunction = cobra.ExactArgs(1), c.completeNames
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		connected, err := c.connect(c.warnings())
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

// chunk is how many objects a list asks for at a time.
const chunk = 500

// selection are the flags -A and -l of commands that take a name or are about all instances.
type selection struct {
	all    bool
	labels string
}

func (s *selection) add(cmd *cobra.Command) {
	cmd.Flags().BoolVarP(&s.all, "all-namespaces", "A", false, "those of all namespaces")
	cmd.Flags().StringVarP(&s.labels, "selector", "l", "", "those with these labels, for example app=web")
}

func (s *selection) check(args []string) error {
	if len(args) > 0 && (s.all || s.labels != "") {
		return errors.New("a resource cannot be retrieved by name with --all-namespaces or --selector")
	}
	return nil
}

// eachInstance calls the function with every instance of the namespace, or of all, that is selected.
func (c *connection) eachInstance(ctx context.Context, which selection, do func(*v1alpha2.NginxOperator) error) error {
	options := &client.ListOptions{Limit: chunk, Raw: &metav1.ListOptions{LabelSelector: which.labels}}
	if !which.all {
		options.Namespace = c.namespace
	}
	for {
		list := &v1alpha2.NginxOperatorList{}
		if err := c.List(ctx, list, options); err != nil {
			return err
		}
		for i := range list.Items {
			if err := do(&list.Items[i]); err != nil {
				return err
			}
		}
		if options.Continue = list.Continue; options.Continue == "" {
			return nil
		}
	}
}

// completeNames completes the names of instances.
func (c *cli) completeNames(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	connected, err := c.connect(rest.NoWarnings{})
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

// colored reports whether colors may be written: to a terminal, unless NO_COLOR is set (https://no-color.org).
func colored(to io.Writer) bool {
	file, isFile := to.(*os.File)
	return isFile && os.Getenv("NO_COLOR") == "" && term.IsTerminal(int(file.Fd())) //nolint:gosec // a file descriptor is small
}

// output is the flag -o.
type output string

func (o *output) add(cmd *cobra.Command) {
	cmd.Flags().StringVarP((*string)(o), "output", "o", "", "json or yaml; text where it is not given")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"json", "yaml"}, cobra.ShellCompDirectiveNoFileComp))
}

func (o *output) check() error {
	switch *o {
	case "", "json", "yaml":
		return nil
	}
	return fmt.Errorf("unable to match a printer suitable for the output format %q, allowed formats are: json,yaml", string(*o))
}

// print writes a value in the format, and reports whether there is one.
func (o *output) print(to io.Writer, value any) (bool, error) {
	if *o == "" {
		return false, nil
	}
	var raw []byte
	var err error
	if *o == "json" {
		raw, err = json.MarshalIndent(value, "", "    ")
		raw = append(raw, '\n')
	} else {
		raw, err = yaml.Marshal(value)
	}
	if err == nil {
		_, err = to.Write(raw)
	}
	return true, err
}
