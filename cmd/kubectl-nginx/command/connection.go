package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/pager"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/cmd/kubectl-nginx/printer"
	"github.com/example/nginx-operator/internal/scheme"
	"github.com/example/nginx-operator/internal/wellknown"
)

type connection struct {
	client.Client

	core      kubernetes.Interface
	namespace string
	// enforced is true if a flag sets the namespace: an object with another namespace is an error.
	enforced bool
}

// connect returns a client for the cluster of the flags. warn gets each warning once.
func (c *cli) connect(warn func(text string)) (*connection, error) {
	config, err := c.kube.ToRESTConfig()
	if err != nil {
		return nil, err
	}

	config = rest.CopyConfig(config)
	config.WarningHandler = &warnings{warn: warn}
	config.QPS = -1 // the API server's priority and fairness limits the rate

	mapper, err := c.kube.ToRESTMapper()
	if err != nil {
		return nil, err
	}

	namespace, enforced, err := c.kube.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return nil, err
	}

	core, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}

	cluster, err := client.New(config, client.Options{Scheme: scheme.New(), Mapper: mapper})
	return &connection{cluster, core, namespace, enforced}, err
}

func (c *cli) warn(text string) {
	_, _ = fmt.Fprintln(c.ErrOut, printer.PainterOf(c.ErrOut).Paint(printer.Yellow, "Warning:"), printer.Line(text))
}

type warnings struct {
	warn func(text string)

	mu   sync.Mutex
	seen []string
}

func (w *warnings) HandleWarningHeader(code int, _, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if code == 299 && text != "" && !slices.Contains(w.seen, text) {
		w.seen = append(w.seen, text)
		w.warn(text)
	}
}

func (c *connection) instance(ctx context.Context, name string) (*v1alpha2.NginxOperator, error) {
	object := &v1alpha2.NginxOperator{}
	return object, c.Get(ctx, client.ObjectKey{Namespace: c.namespace, Name: name}, object)
}

func (c *connection) eachInstance(ctx context.Context, which selection, do func(*v1alpha2.NginxOperator) error) error {
	namespace := c.namespace
	if which.all {
		namespace = metav1.NamespaceAll
	}

	pages := pager.New(func(ctx context.Context, page metav1.ListOptions) (runtime.Object, error) {
		list := &v1alpha2.NginxOperatorList{}
		options := &client.ListOptions{Namespace: namespace, Limit: page.Limit, Continue: page.Continue, Raw: &page}
		return list, c.List(ctx, list, options)
	})

	return pages.EachListItem(ctx, metav1.ListOptions{LabelSelector: which.labels}, func(object runtime.Object) error {
		return do(object.(*v1alpha2.NginxOperator))
	})
}

func (c *connection) pods(ctx context.Context, object *v1alpha2.NginxOperator) ([]corev1.Pod, error) {
	list := &corev1.PodList{}
	err := c.List(ctx, list, client.InNamespace(object.Namespace), client.MatchingLabels(wellknown.Selector(object.Name)))
	return list.Items, err
}

// selection has the flags of commands that accept a name, or else select instances with -A and -l.
type selection struct {
	format output
	all    bool
	labels string
}

func (s *selection) add(cmd *cobra.Command) {
	s.format.add(cmd)
	cmd.Flags().BoolVarP(&s.all, "all-namespaces", "A", false, "select the instances of all namespaces")
	cmd.Flags().StringVarP(&s.labels, "selector", "l", "", "select instances by label, for example app=web")
}

func (s *selection) check(args []string) error {
	if len(args) > 0 && (s.all || s.labels != "") {
		return errors.New("a resource cannot be retrieved by name with --all-namespaces or --selector")
	}
	return s.format.check()
}

type output string

func (o *output) add(cmd *cobra.Command) {
	cmd.Flags().StringVarP((*string)(o), "output", "o", "", "output format: json or yaml (default: text)")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"json", "yaml"}, cobra.ShellCompDirectiveNoFileComp))
}

func (o *output) check() error {
	switch *o {
	case "", "json", "yaml":
		return nil
	}
	return fmt.Errorf("unable to match a printer suitable for the output format %q, allowed formats are: json,yaml", string(*o))
}

func (o *output) print(to io.Writer, value any) (bool, error) {
	encode := printer.YAML
	switch *o {
	case "":
		return false, nil
	case "json":
		encode = printer.JSON
	}

	raw, err := encode(value)
	if err == nil {
		_, err = to.Write(raw)
	}
	return true, err
}

// files is the flag -f, which is required.
type files []string

func (f *files) add(cmd *cobra.Command) {
	const usage = "files, directories, or URLs with manifests; - for standard input"
	cmd.Flags().StringSliceVarP((*[]string)(f), "filename", "f", nil, usage)
	cmd.PreRunE = func(*cobra.Command, []string) error {
		if len(*f) == 0 {
			return errors.New("must specify -f FILENAME")
		}
		return nil
	}
}

// read returns the manifests. If enforced is true, another namespace is an error.
func (f *files) read(builder *resource.Builder, enforced bool) ([]*unstructured.Unstructured, error) {
	options := &resource.FilenameOptions{Filenames: *f}
	infos, err := builder.FilenameParam(enforced, options).Flatten().Do().Infos()
	var manifests []*unstructured.Unstructured
	for _, info := range infos {
		manifests = append(manifests, info.Object.(*unstructured.Unstructured))
	}
	return manifests, err
}
