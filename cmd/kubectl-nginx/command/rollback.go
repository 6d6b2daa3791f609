package command

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/cmd/kubectl-nginx/preview"
	"github.com/example/nginx-operator/cmd/kubectl-nginx/tree"
	"github.com/example/nginx-operator/controllers/nginxoperator"
)

// kept are the fields that a rollback leaves as they are: how many Pods there are is no part of a revision, and paused means hands off.
var kept = []string{"replicas", "autoscaling", "paused"}

func newRollback(c *cli) *cobra.Command {
	var dryRun, yes bool
	waiting := waitFlags{}
	cmd := &cobra.Command{
		Use:   "rollback NAME",
		Short: "Declare again what served last",
		Long: `Make the spec what it was when all replicas served last (status.lastGoodRevision), but for
replicas, autoscaling and paused. That ends a rollout that goes wrong, or makes the declaration
of an instance whose change was taken back what runs. What is changed is shown first, and asked
about.

The operator keeps the declaration that served last and the one that is being applied, and no
older ones: those are in your version control. ConfigMaps and Secrets that the spec names are
yours and stay as they are.`,
		Example: "  kubectl nginx rollback web --dry-run\n  kubectl nginx rollback web --yes --wait",
	}
	c.onInstance(cmd, func(ctx context.Context, connected *connection, object *v1alpha2.NginxOperator) error {
		return c.rollback(ctx, connected, object, dryRun, yes, &waiting)
	})
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "show the change, have the API server check it, and write nothing")
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	waiting.add(cmd)
	return cmd
}

func (c *cli) rollback(
	ctx context.Context, connected *connection, object *v1alpha2.NginxOperator, dryRun, yes bool, waiting *waitFlags,
) error {
	spec, named, err := connected.lastGood(ctx, object)
	if err != nil {
		return err
	}
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(v1alpha2.GroupVersion.WithKind("NginxOperator"))
	if err := connected.Get(ctx, client.ObjectKeyFromObject(object), live); err != nil {
		return err
	}
	planned := live.DeepCopy()
	planned.Object["spec"] = withKept(spec, live)
	if err := connected.Update(ctx, planned, fieldOwner, client.DryRunAll); err != nil {
		return err
	}
	change, err := preview.Compare(live, planned)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprint(c.Out, preview.Colored(change, tree.Painter{On: colored(c.Out)})); err != nil {
		return err
	}
	if change == "" {
		return fmt.Errorf("NginxOperator %q declares what served last already. "+
			"Older declarations are not kept: apply one from your version control", object.Name)
	}
	for _, one := range named {
		_, _ = fmt.Fprintf(c.ErrOut, "Warning: %s is named by that declaration, and stays as it is\n", one)
	}
	if dryRun {
		return c.done(ctx, connected, object, "rolled back (server dry run)", &waitFlags{})
	}
	if !yes && !c.confirmed("Declare that again?") {
		return errors.New("not confirmed: nothing was changed")
	}
	planned = live.DeepCopy() // with its resourceVersion, so that nobody's change is lost
	planned.Object["spec"] = withKept(spec, live)
	if err := connected.Update(ctx, planned, fieldOwner); err != nil {
		return err
	}
	object.Generation = planned.GetGeneration()
	return c.done(ctx, connected, object, "rolled back", waiting)
}

// lastGood returns the spec of the declaration that served last, and the ConfigMaps that it names.
func (c *connection) lastGood(ctx context.Context, object *v1alpha2.NginxOperator) (spec map[string]any, named []string, err error) {
	good := object.Status.LastGoodRevision
	if good == nil {
		return nil, nil, fmt.Errorf("NginxOperator %q has not served with all its replicas yet, so there is nothing to go back to", object.Name)
	}
	revisions, err := preview.Revisions(ctx, c, object)
	if err != nil {
		return nil, nil, err
	}
	at := slices.IndexFunc(revisions, func(one appsv1.ControllerRevision) bool { return one.Name == good.Revision })
	if at < 0 {
		return nil, nil, fmt.Errorf("ControllerRevision %q with the declaration that served last does not exist", good.Revision)
	}
	typed, err := nginxoperator.Recorded(&revisions[at])
	if err != nil {
		return nil, nil, fmt.Errorf("failed to read ControllerRevision %q: %w", good.Revision, err)
	}
	var recorded struct{ Spec map[string]any }
	if err := json.Unmarshal(revisions[at].Data.Raw, &recorded); err != nil {
		return nil, nil, fmt.Errorf("failed to read ControllerRevision %q: %w", good.Revision, err)
	}
	return recorded.Spec, configMapsOf(&typed.Spec), nil
}

// configMapsOf returns the ConfigMaps that a spec names.
func configMapsOf(spec *v1alpha2.NginxOperatorSpec) []string {
	var out []string
	add := func(name string) {
		if text := "ConfigMap " + name; !slices.Contains(out, text) {
			out = append(out, text)
		}
	}
	if spec.Config != nil && spec.Config.ConfigMapRef != nil {
		add(spec.Config.ConfigMapRef.Name)
	}
	if spec.Content != nil {
		add(spec.Content.ConfigMapRef.Name)
	}
	for _, file := range spec.Files {
		if file.ConfigMapRef != nil {
			add(file.ConfigMapRef.Name)
		}
	}
	return out
}

// withKept returns an earlier spec with what the object has now of the fields that stay.
func withKept(earlier map[string]any, live *unstructured.Unstructured) map[string]any {
	out := (&unstructured.Unstructured{Object: earlier}).DeepCopy().Object
	now, _, _ := unstructured.NestedMap(live.Object, "spec")
	for _, field := range kept {
		delete(out, field)
		if value, found := now[field]; found {
			out[field] = value
		}
	}
	return out
}

// confirmed asks on the terminal.
func (c *cli) confirmed(question string) bool {
	_, _ = fmt.Fprintf(c.ErrOut, "%s [y/N] ", question)
	answer, _ := bufio.NewReader(c.In).ReadString('\n')
	answer = strings.ToLower(strings.TrimSpace(answer))
	return answer == "y" || answer == "yes"
}
