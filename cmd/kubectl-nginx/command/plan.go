package command

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/resource"

	"github.com/example/nginx-operator/cmd/kubectl-nginx/preview"
	"github.com/example/nginx-operator/cmd/kubectl-nginx/tree"
)

func newPlan(c *cli) *cobra.Command {
	var format output
	planner := &preview.Planner{}
	var files []string
	cmd := &cobra.Command{
		Use:   "plan -f FILENAME",
		Short: "Show what applying a manifest would change, down to whether Pods are replaced",
		Long: `Show what "kubectl apply -f FILENAME" would change, and write nothing: what admission says,
which fields of the objects change, which children the operator would create, change and delete,
and whether running Pods are replaced. ConfigMaps and Secrets of the same manifests count.

The objects are applied in a dry run. The children are computed by the operator's own code and
applied in a dry run too, with your permissions.

The exit status is that of kubectl diff: 0 where nothing changes, 1 where something does, 2
after an error or a refusal by admission.`,
		Example: "  kubectl nginx plan -f web.yaml\n  cat web.yaml | kubectl nginx plan -f -",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := format.check(); err != nil {
				return err
			}
			if len(files) == 0 {
				return errors.New("must specify -f")
			}
			return c.plan(cmd.Context(), planner, files, &format)
		},
	}
	format.add(cmd)
	flags := cmd.Flags()
	flags.StringSliceVarP(&files, "filename", "f", nil, "files, directories or URLs with manifests, - for standard input")
	flags.BoolVar(&planner.Apply.ServerSide, "server-side", false, "as kubectl apply --server-side does")
	flags.StringVar(&planner.Apply.FieldManager, "field-manager", "kubectl", "who applies, with --server-side")
	flags.BoolVar(&planner.Apply.ForceConflicts, "force-conflicts", false, "take fields over from other managers, with --server-side")
	flags.StringVar(&planner.DefaultImage, "default-image", "",
		"the operator's image for instances that name none (default: what runs tells, else that of this release)")
	return cmd
}

func (c *cli) plan(ctx context.Context, planner *preview.Planner, files []string, format *output) error {
	warnings := &collected{}
	connected, err := c.connect(warnings)
	if err != nil {
		return err
	}
	planner.Client = connected
	manifests, err := c.read(connected, files)
	if err != nil {
		return err
	}
	plan, err := planner.Plan(ctx, manifests)
	paint := tree.Painter{On: colored(c.ErrOut)}
	if err != nil {
		for _, warning := range warnings.all {
			_, _ = fmt.Fprintln(c.ErrOut, paint.Paint(tree.Yellow, "Warning:"), tree.Safe(warning))
		}
		return err
	}
	plan.Warnings = warnings.all
	printed, err := format.print(c.Out, plan)
	if !printed {
		err = plan.Render(c.Out, tree.Painter{On: colored(c.Out)})
	}
	if err == nil && plan.Differs() {
		err = errDiffer
	}
	return err
}

// read returns the manifests of files, in the namespace of the kubeconfig flags where they name none.
func (c *cli) read(connected *connection, files []string) ([]*unstructured.Unstructured, error) {
	found := resource.NewBuilder(c.kube).Unstructured().NamespaceParam(connected.namespace).DefaultNamespace().
		FilenameParam(connected.enforced, &resource.FilenameOptions{Filenames: files}).Flatten().Do()
	infos, err := found.Infos()
	if err != nil {
		return nil, err
	}
	var out []*unstructured.Unstructured
	for _, info := range infos {
		out = append(out, info.Object.(*unstructured.Unstructured))
	}
	return out, nil
}

// collected keeps what the API server warns of, each once.
type collected struct {
	mu  sync.Mutex
	all []string
}

// HandleWarningHeader implements rest.WarningHandler.
func (w *collected) HandleWarningHeader(code int, _, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if code == 299 && text != "" && !slices.Contains(w.all, text) {
		w.all = append(w.all, text)
	}
}
