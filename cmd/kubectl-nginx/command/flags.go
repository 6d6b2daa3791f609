package command

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/resource"

	"github.com/example/nginx-operator/cmd/kubectl-nginx/printer"
)

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

// output is the flag -o.
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

// print writes a value in the format of the flag. It reports whether the flag is set.
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

// read returns the manifests. The builder must be for unstructured objects. If enforced is true,
// another namespace is an error.
func (f *files) read(builder *resource.Builder, enforced bool) ([]*unstructured.Unstructured, error) {
	options := &resource.FilenameOptions{Filenames: *f}
	infos, err := builder.FilenameParam(enforced, options).Flatten().Do().Infos()
	var manifests []*unstructured.Unstructured
	for _, info := range infos {
		manifests = append(manifests, info.Object.(*unstructured.Unstructured))
	}
	return manifests, err
}
