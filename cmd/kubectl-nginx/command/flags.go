package command

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/example/nginx-operator/cmd/kubectl-nginx/printer"
)

// selection has the flags -A and -l of commands that accept a name, or else select instances.
type selection struct {
	all    bool
	labels string
}

func (s *selection) add(cmd *cobra.Command) {
	cmd.Flags().BoolVarP(&s.all, "all-namespaces", "A", false, "select the instances of all namespaces")
	cmd.Flags().StringVarP(&s.labels, "selector", "l", "", "select instances by label, for example app=web")
}

func (s *selection) check(args []string) error {
	if len(args) > 0 && (s.all || s.labels != "") {
		return errors.New("a resource cannot be retrieved by name with --all-namespaces or --selector")
	}
	return nil
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
	if *o == "" {
		return false, nil
	}
	var raw []byte
	var err error
	if *o == "json" {
		raw, err = printer.JSON(value)
	} else {
		raw, err = printer.YAML(value)
	}
	if err == nil {
		_, err = to.Write(raw)
	}
	return true, err
}
