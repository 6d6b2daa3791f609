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
	"github.com/example/nginx-operator/cmd/kubectl-nginx/printer"
	"github.com/example/nginx-operator/internal/record"
)

// retained are the fields that a rollback does not change. The number of Pods is not part of a
// revision, and paused is a decision of the user.
var retained = []string{"replicas", "autoscaling", "paused"}

func newRollback(c *cli) *cobra.Command {
	var dryRun, yes bool
	waiting := waitFlags{}
	cmd := &cobra.Command{
		Use:   "rollback NAME",
		Short: "Restore the spec of the last good revision",
		Long: `Restore the spec of the last good revision (status.lastGoodRevision), except for replicas,
autoscaling, and paused. Use it to stop a failing rollout. After an automatic rollback, use it
to make the spec match the running Pods. The command shows the difference, and asks for
confirmation.

The operator stores only the last good revision and the current one. For older revisions, use
your version control. The command does not change ConfigMaps and Secrets that the spec
references.`,
		Example: "  kubectl nginx rollback web --dry-run\n  kubectl nginx rollback web --yes --wait",
	}
	c.onInstance(cmd, func(ctx context.Context, connected *connection, object *v1alpha2.NginxOperator) error {
		return c.rollback(ctx, connected, object, dryRun, yes, &waiting)
	})
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "show the change and validate it on the server, without writing it")
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask for confirmation")
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
	planned.Object["spec"] = withRetained(spec, live)
	if err := connected.Update(ctx, planned, fieldOwner, client.DryRunAll); err != nil {
		return err
	}
	change, err := preview.Compare(live, planned)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprint(c.Out, preview.Colored(change, printer.PainterOf(c.Out))); err != nil {
		return err
	}
	if change == "" {
		return fmt.Errorf("NginxOperator %q already has the spec of the last good revision. "+
			"The operator stores no older revisions. Apply one from your version control", object.Name)
	}
	for _, one := range named {
		c.warn(one + " is referenced by that revision and is not rolled back")
	}
	if dryRun {
		return c.done(ctx, connected, object, "rolled back (server dry run)", &waitFlags{})
	}
	if !yes && !c.confirmed("Roll back to this spec?") {
		return errors.New("not confirmed, nothing was changed")
	}
	planned = live.DeepCopy() // its resourceVersion makes a concurrent change a conflict
	planned.Object["spec"] = withRetained(spec, live)
	if err := connected.Update(ctx, planned, fieldOwner); err != nil {
		return err
	}
	object.Generation = planned.GetGeneration()
	return c.done(ctx, connected, object, "rolled back", waiting)
}

// lastGood returns the spec of the last good revision, and the ConfigMaps that it references.
func (c *connection) lastGood(ctx context.Context, object *v1alpha2.NginxOperator) (spec map[string]any, named []string, err error) {
	good := object.Status.LastGoodRevision
	if good == nil {
		return nil, nil, fmt.Errorf("NginxOperator %q has no last good revision: its replicas have never all been ready", object.Name)
	}
	revisions, err := preview.Revisions(ctx, c, object)
	if err != nil {
		return nil, nil, err
	}
	at := slices.IndexFunc(revisions, func(one appsv1.ControllerRevision) bool { return one.Name == good.Revision })
	if at < 0 {
		return nil, nil, fmt.Errorf("the record %q of the last good revision does not exist", good.Revision)
	}
	typed, err := record.Decode(revisions[at].Data.Raw)
	if err != nil {
		return nil, nil, fmt.Errorf("failed to read ControllerRevision %q: %w", good.Revision, err)
	}
	var recorded struct{ Spec map[string]any }
	if err := json.Unmarshal(revisions[at].Data.Raw, &recorded); err != nil {
		return nil, nil, fmt.Errorf("failed to read ControllerRevision %q: %w", good.Revision, err)
	}
	return recorded.Spec, configMapsOf(&typed.Spec), nil
}

// configMapsOf returns the ConfigMaps that a spec references.
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

// withRetained returns an earlier spec with the current values of the retained fields.
func withRetained(earlier map[string]any, live *unstructured.Unstructured) map[string]any {
	out := (&unstructured.Unstructured{Object: earlier}).DeepCopy().Object
	now, _, _ := unstructured.NestedMap(live.Object, "spec")
	for _, field := range retained {
		delete(out, field)
		if value, found := now[field]; found {
			out[field] = value
		}
	}
	return out
}

// confirmed asks for confirmation on the terminal, and reports whether the user confirmed.
func (c *cli) confirmed(question string) bool {
	_, _ = fmt.Fprintf(c.ErrOut, "%s [y/N] ", question)
	answer, _ := bufio.NewReader(c.In).ReadString('\n')
	answer = strings.ToLower(strings.TrimSpace(answer))
	return answer == "y" || answer == "yes"
}
