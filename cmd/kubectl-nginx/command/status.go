package command

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/cmd/kubectl-nginx/printer"
	"github.com/example/nginx-operator/cmd/kubectl-nginx/tree"
)

func newStatus(c *cli) *cobra.Command {
	var which selection
	cmd := &cobra.Command{
		Use:   "status [NAME]",
		Short: "Show the status of instances, with remedies for problems",
		Long: `Show the status of an instance: reasons for blocked changes with remedies, conditions,
addresses, child objects with Pods, certificates, and revisions. Without a name, show all
instances, without child objects, Pods, and revisions.`,
		Example:           "  kubectl nginx status web\n  kubectl nginx status -A -o json",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: c.completeNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := which.check(args); err != nil {
				return err
			}

			connected, err := c.connect(c.warn)
			if err != nil {
				return err
			}
			if len(args) > 0 {
				return c.statusOf(cmd.Context(), connected, args[0], &which.format)
			}
			return c.statusOfAll(cmd.Context(), connected, which)
		},
	}

	which.add(cmd)
	return cmd
}

func (c *cli) statusOf(ctx context.Context, connected *connection, name string, format *output) error {
	object, err := connected.instance(ctx, name)
	if err != nil {
		return err
	}

	children := map[v1alpha2.RelatedObject]client.Object{}
	for _, related := range object.Status.RelatedObjects {
		child, err := connected.child(ctx, object, related)
		if err != nil {
			return err
		}
		if child != nil {
			children[related] = child
		}
	}

	pods, err := connected.pods(ctx, object)
	if err != nil {
		return err
	}

	report := tree.WithDetails(object, children, pods)
	if printed, err := format.print(c.Out, report); printed {
		return err
	}

	return tree.Render(c.Out, report, printer.PainterOf(c.Out), time.Now())
}

// statusOfAll prints trees as they arrive, or one JSON or YAML structure at the end.
func (c *cli) statusOfAll(ctx context.Context, connected *connection, which selection) error {
	list := struct {
		Items []tree.Report `json:"items"`
	}{Items: []tree.Report{}}

	isEmpty := true
	err := connected.eachInstance(ctx, which, func(object *v1alpha2.NginxOperator) error {
		isEmpty = false
		if which.format != "" {
			list.Items = append(list.Items, tree.Of(object))
			return nil
		}
		return tree.Render(c.Out, tree.Of(object), printer.PainterOf(c.Out), time.Now())
	})
	if err != nil {
		return err
	}

	if printed, err := which.format.print(c.Out, list); printed || !isEmpty {
		return err
	}

	where := " in " + connected.namespace + " namespace."
	if which.all {
		where = "."
	}

	_, err = fmt.Fprintln(c.ErrOut, "No resources found"+where)
	return err
}

// child reads a child, or only its metadata if the report needs no more. It returns nil if the child
// does not exist.
func (c *connection) child(ctx context.Context, object *v1alpha2.NginxOperator, related v1alpha2.RelatedObject) (client.Object, error) {
	gvk := schema.FromAPIVersionAndKind(related.APIVersion, related.Kind)
	var child client.Object = &metav1.PartialObjectMetadata{}
	if typed, err := c.Scheme().New(gvk); err == nil && related.Kind != "ConfigMap" {
		child = typed.(client.Object)
	}

	child.GetObjectKind().SetGroupVersionKind(gvk)
	err := c.Get(ctx, client.ObjectKey{Namespace: object.Namespace, Name: related.Name}, child)
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return nil, nil
	}

	return child, err
}
