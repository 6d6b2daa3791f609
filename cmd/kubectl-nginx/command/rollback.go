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
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/cmd/kubectl-nginx/preview"
	"github.com/example/nginx-operator/cmd/kubectl-nginx/printer"
	"github.com/example/nginx-operator/internal/operand"
	"github.com/example/nginx-operator/internal/revision"
)

func newRollback(c *cli) *cobra.Command {
	var dryRun, yes bool
	waiting := waitFlags{}
	cmd := &cobra.Command{
		Use:   "rollback NAME",
		Short: "Restore the spec of the Pods that are in effect",
		Long: `Restore the part of the spec that reaches the Pods, as it was for the last good revision
(status.lastGoodRevision). All other fields stay. Use it to stop a failing rollout. After an
automatic rollback, use it to make the spec match the running Pods. The command shows the
difference, and asks for confirmation.

The operator stores the last good revision only until all Pods of the next one are ready. For
older revisions, use your version control. The command does not change ConfigMaps and Secrets that
the spec references.`,
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
	restored, err := connected.inEffect(ctx, object)
	if err != nil {
		return err
	}
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(v1alpha2.GroupVersion.WithKind("NginxOperator"))
	if err := connected.Get(ctx, client.ObjectKeyFromObject(object), live); err != nil {
		return err
	}
	planned := live.DeepCopy()
	planned.Object["spec"] = restored.spec(live)
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
		return alreadyGood(object)
	}
	for _, one := range configMapsOf(&restored.typed) {
		c.warn(one + " is referenced by that revision and is not rolled back")
	}
	if dryRun {
		return c.done(ctx, connected, object, "rolled back (server dry run)", &waitFlags{})
	}
	if !yes && !c.confirmed("Roll back to this spec?") {
		return errors.New("not confirmed, nothing was changed")
	}
	planned = live.DeepCopy() // its resourceVersion makes a concurrent change a conflict
	planned.Object["spec"] = restored.spec(live)
	if err := connected.Update(ctx, planned, fieldOwner); err != nil {
		return err
	}
	object.Generation = planned.GetGeneration()
	return c.done(ctx, connected, object, "rolled back", waiting)
}

func alreadyGood(object *v1alpha2.NginxOperator) error {
	return fmt.Errorf("the Pods of NginxOperator %q are already those of its spec. "+
		"The operator stores no older revisions. Apply one from your version control", object.Name)
}

// inEffect returns the spec of the Pods that are in effect, as far as it reaches them.
func (c *connection) inEffect(ctx context.Context, object *v1alpha2.NginxOperator) (out podSpec, err error) {
	reference := object.Status.StoredRevision
	switch {
	case object.Status.LastGoodRevision == nil:
		return out, fmt.Errorf("NginxOperator %q has no last good revision: its replicas have never all been ready", object.Name)
	case reference == nil:
		return out, alreadyGood(object)
	}
	stored := &appsv1.ControllerRevision{}
	if err := c.Get(ctx, client.ObjectKey{Namespace: object.Namespace, Name: reference.Name}, stored); err != nil {
		return out, err
	}
	spec, children, err := revision.SpecOf(stored.Data.Raw, reference.Hash)
	if err == nil && spec == nil {
		err = errors.New("it does not have the spec, which was too large, or was declared under a release before 0.8.0: " +
			"apply the earlier spec from your version control")
	}
	if err == nil {
		err = errors.Join(json.Unmarshal(spec, &out.typed), json.Unmarshal(spec, &out.fields))
	}
	if err != nil {
		return out, fmt.Errorf("failed to read ControllerRevision %q: %w", reference.Name, err)
	}
	if service := operand.ChildOf[*corev1.Service](children); service != nil {
		out.service = service.Spec.Ports
	}
	return out, nil
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

// confirmed asks for confirmation on the terminal, and reports whether the user confirmed.
func (c *cli) confirmed(question string) bool {
	_, _ = fmt.Fprintf(c.ErrOut, "%s [y/N] ", question)
	answer, _ := bufio.NewReader(c.In).ReadString('\n')
	answer = strings.ToLower(strings.TrimSpace(answer))
	return answer == "y" || answer == "yes"
}
