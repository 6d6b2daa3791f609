package command

import (
	"context"
	"errors"
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
		Long: `Show the status of an instance: the reasons why it is blocked with remedies, conditions,
addresses, child objects with Pods, certificates, and revisions. Without a name, show all
instances, without child objects, Pods, and revisions.

The status of the NginxOperator is enough for reasons and remedies. If you have no permission to
read the child objects or the Pods, the command shows everything else, and lists the missing
permissions.`,
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

	details, err := connected.details(ctx, object)
	if err != nil {
		return err
	}

	report := tree.WithDetails(object, details)
	if printed, err := format.print(c.Out, report); printed {
		return err
	}

	return tree.Render(c.Out, report, printer.PainterOf(c.Out), time.Now())
}

// details reads the child objects and Pods of an instance, as far as the user may read them.
func (c *connection) details(ctx context.Context, object *v1alpha2.NginxOperator) (tree.Details, error) {
	details := tree.Details{Children: map[v1alpha2.RelatedObject]client.Object{}}
	for _, related := range object.Status.RelatedObjects {
		child, err := c.child(ctx, object, related)
		switch {
		case apierrors.IsForbidden(err):
			details.Forbidden = append(details.Forbidden, forbidden("get", err))
			details.Unknown = append(details.Unknown, related)
		case err != nil:
			return details, err
		case child != nil:
			details.Children[related] = child
		}
	}

	pods, err := c.pods(ctx, object)
	if apierrors.IsForbidden(err) {
		details.Forbidden = append(details.Forbidden, forbidden("list", err))
		err = nil
	}

	details.Pods = pods
	return details, err
}

// forbidden returns the permission that is missing according to an error of the API server.
func forbidden(verb string, err error) tree.Forbidden {
	missing := tree.Forbidden{Verb: verb, Message: err.Error()}
	var refused apierrors.APIStatus
	if errors.As(err, &refused) && refused.Status().Details != nil {
		details := refused.Status().Details
		missing.Resource = schema.GroupResource{Group: details.Group, Resource: details.Kind}.String()
	}
	return missing
}

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

// child reads a child, or only its metadata if that is enough. A missing child is nil.
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
