package command

import (
	"context"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/cmd/kubectl-nginx/preview"
	"github.com/example/nginx-operator/cmd/kubectl-nginx/tree"
	"github.com/example/nginx-operator/internal/wellknown"
)

func newStatus(c *cli) *cobra.Command {
	var format output
	var which selection
	cmd := &cobra.Command{
		Use:   "status [NAME]",
		Short: "Show how instances are, and what to do where they are not well",
		Long: `Show how an instance is: what blocks it and the way out, conditions, addresses, children with
Pods, certificates, and revisions. Without a name, the same of every instance, without children,
Pods and revisions.`,
		Example:           "  kubectl nginx status web\n  kubectl nginx status -A -o json",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: c.completeNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := format.check(); err != nil {
				return err
			}
			if err := which.check(args); err != nil {
				return err
			}
			connected, err := c.connect(c.warnings())
			if err != nil {
				return err
			}
			if len(args) > 0 {
				return c.statusOf(cmd.Context(), connected, args[0], &format)
			}
			return c.statusOfAll(cmd.Context(), connected, which, &format)
		},
	}
	format.add(cmd)
	which.add(cmd)
	return cmd
}

func (c *cli) statusOf(ctx context.Context, connected *connection, name string, format *output) error {
	object, err := connected.instance(ctx, name)
	if err != nil {
		return err
	}
	report, err := connected.report(ctx, object)
	if err != nil {
		return err
	}
	if printed, err := format.print(c.Out, report); printed {
		return err
	}
	return tree.Render(c.Out, []tree.Report{report}, tree.Painter{On: colored(c.Out)}, time.Now())
}

// statusOfAll prints the trees as they come, and a structure at the end.
func (c *cli) statusOfAll(ctx context.Context, connected *connection, which selection, format *output) error {
	list := struct {
		Items []tree.Report `json:"items"`
	}{Items: []tree.Report{}}
	found := false
	err := connected.eachInstance(ctx, which, func(object *v1alpha2.NginxOperator) error {
		found = true
		if *format != "" {
			list.Items = append(list.Items, tree.Of(object))
			return nil
		}
		return tree.Render(c.Out, []tree.Report{tree.Of(object)}, tree.Painter{On: colored(c.Out)}, time.Now())
	})
	if err != nil {
		return err
	}
	if printed, err := format.print(c.Out, list); printed || found {
		return err
	}
	where := " in " + connected.namespace + " namespace."
	if which.all {
		where = "."
	}
	_, err = c.ErrOut.Write([]byte("No resources found" + where + "\n"))
	return err
}

// report reads what belongs to an instance.
func (c *connection) report(ctx context.Context, object *v1alpha2.NginxOperator) (tree.Report, error) {
	children := map[v1alpha2.RelatedObject]client.Object{}
	for _, related := range object.Status.RelatedObjects {
		child, err := c.child(ctx, object, related)
		if err != nil {
			return tree.Report{}, err
		}
		if child != nil {
			children[related] = child
		}
	}
	pods, err := c.pods(ctx, object)
	if err != nil {
		return tree.Report{}, err
	}
	revisions, err := preview.Revisions(ctx, c, object)
	if err != nil {
		return tree.Report{}, err
	}
	return tree.WithDetails(object, children, pods, revisions), nil
}

// child reads a child, of which only the metadata is read where nothing else is told. It is nil where there is none.
func (c *connection) child(ctx context.Context, object *v1alpha2.NginxOperator, related v1alpha2.RelatedObject) (client.Object, error) {
	gvk := schema.FromAPIVersionAndKind(related.APIVersion, related.Kind)
	var child client.Object = &metav1.PartialObjectMetadata{}
	if made, err := c.Scheme().New(gvk); err == nil && related.Kind != "ConfigMap" {
		child = made.(client.Object)
	}
	child.GetObjectKind().SetGroupVersionKind(gvk)
	err := c.Get(ctx, client.ObjectKey{Namespace: object.Namespace, Name: related.Name}, child)
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return nil, nil
	}
	return child, err
}

// pods lists the Pods of an instance.
func (c *connection) pods(ctx context.Context, object *v1alpha2.NginxOperator) ([]corev1.Pod, error) {
	var out []corev1.Pod
	options := &client.ListOptions{Namespace: object.Namespace, Limit: chunk}
	client.MatchingLabels(wellknown.Selector(object.Name)).ApplyToList(options)
	for {
		list := &corev1.PodList{}
		if err := c.List(ctx, list, options); err != nil {
			return nil, err
		}
		out = append(out, list.Items...)
		if options.Continue = list.Continue; options.Continue == "" {
			return out, nil
		}
	}
}
