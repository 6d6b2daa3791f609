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
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/cmd/kubectl-nginx/preview"
	"github.com/example/nginx-operator/cmd/kubectl-nginx/printer"
	"github.com/example/nginx-operator/internal/codec"
	"github.com/example/nginx-operator/internal/operand"
	"github.com/example/nginx-operator/internal/resolve"
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

	desired := live.DeepCopy() // its resourceVersion makes a concurrent change a conflict
	desired.Object["spec"] = restored.spec(live)
	planned := desired.DeepCopy()
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
	for _, name := range resolve.Indexes()[resolve.ConfigMapIndex](&v1alpha2.NginxOperator{Spec: restored.typed}) {
		c.warn("ConfigMap " + name + " is referenced by that revision, and rollback does not change it")
	}
	if dryRun {
		return c.done(ctx, connected, object, "rolled back (server dry run)", &waitFlags{})
	}
	if !yes && !c.confirmed("Roll back to this spec?") {
		return errors.New("not confirmed: nothing was changed. To skip the question, use --yes")
	}

	if err := connected.Update(ctx, desired, fieldOwner); err != nil {
		return err
	}

	object.Generation = desired.GetGeneration()
	return c.done(ctx, connected, object, "rolled back", waiting)
}

func alreadyGood(object *v1alpha2.NginxOperator) error {
	return fmt.Errorf("nothing to roll back: the Pods of NginxOperator %q run its spec, and the operator stores no older revision. "+
		"Apply an older spec from your version control", object.Name)
}

// inEffect returns the spec of the Pods that are in effect, as far as it reaches them.
func (c *connection) inEffect(ctx context.Context, object *v1alpha2.NginxOperator) (restored podSpec, err error) {
	reference := object.Status.StoredRevision
	switch {
	case object.Status.LastGoodRevision == nil:
		return restored, fmt.Errorf("NginxOperator %q has no last good revision: its replicas have never all been ready. "+
			"Correct the spec. For the reason, run: %s", object.Name, statusCommand(object))
	case reference == nil:
		return restored, alreadyGood(object)
	}

	stored := &appsv1.ControllerRevision{}
	if err := c.Get(ctx, client.ObjectKey{Namespace: object.Namespace, Name: reference.Name}, stored); err != nil {
		return restored, err
	}

	spec, children, err := revision.SpecOf(stored.Data.Raw, reference.Hash)
	if err == nil && spec == nil {
		err = errors.New("it stores no spec, because the spec is larger than 16 KiB or was applied under a release before 0.8.0. " +
			"Apply the earlier spec from your version control")
	}
	if err == nil {
		err = errors.Join(json.Unmarshal(spec, &restored.typed), json.Unmarshal(spec, &restored.fields))
	}
	if err != nil {
		return restored, fmt.Errorf("failed to read ControllerRevision %q: %w", reference.Name, err)
	}
	if service := operand.ChildOf[*corev1.Service](children); service != nil {
		restored.service = service.Spec.Ports
	}

	return restored, nil
}

func (c *cli) confirmed(question string) bool {
	_, _ = fmt.Fprintf(c.ErrOut, "%s [y/N] ", question)
	answer, _ := bufio.NewReader(c.In).ReadString('\n')
	answer = strings.ToLower(strings.TrimSpace(answer))
	return answer == "y" || answer == "yes"
}

// podSpec is the part of a spec that reaches the Pods. fields can have more than this release knows.
type podSpec struct {
	fields map[string]any
	typed  v1alpha2.NginxOperatorSpec
	// service has the ports of the Service of these Pods, which have the names.
	service []corev1.ServicePort
}

// spec completes the fields with those of a live object that do not reach the Pods.
func (p podSpec) spec(live *unstructured.Unstructured) map[string]any {
	current, _, _ := unstructured.NestedMap(live.Object, "spec")
	retain(p.fields, current, "replicas", "autoscaling", "paused", "rollout", "service", "networkPolicy", "expose")
	p.restorePorts()
	for _, tls := range codec.Objects(p.fields["tls"]) {
		for _, other := range codec.Objects(current["tls"]) {
			if other["secretName"] == tls["secretName"] {
				retain(tls, other, "nodePort")
			}
		}
	}

	if monitoring, isSet := p.fields["monitoring"].(map[string]any); isSet {
		before, _ := current["monitoring"].(map[string]any)
		retain(monitoring, before, "podMonitor", "alerts")
	}

	patches, _ := p.fields["patches"].([]any)
	for _, patch := range codec.Objects(current["patches"]) {
		if kind, _, _ := unstructured.NestedString(patch, "target", "kind"); kind != "Deployment" {
			patches = append(patches, patch)
		}
	}

	if len(patches) > 0 {
		p.fields["patches"] = patches
	}

	return p.fields
}

func retain(into, live map[string]any, names ...string) {
	for _, name := range names {
		if value, isSet := live[name]; isSet {
			into[name] = value
		}
	}
}

func (p podSpec) restorePorts() {
	for i, port := range codec.Objects(p.fields["ports"]) {
		number := p.typed.Ports[i].Port
		at := slices.IndexFunc(p.service, func(declared corev1.ServicePort) bool { return declared.Port == number })
		if at < 0 {
			port["name"] = fmt.Sprintf("p-%d", number)
			continue
		}

		declared := p.service[at]
		port["name"] = declared.Name
		if protocol := ptr.Deref(declared.AppProtocol, ""); protocol != "" {
			port["appProtocol"] = protocol
		}
		if declared.NodePort != 0 {
			port["nodePort"] = int64(declared.NodePort)
		}
	}
}
