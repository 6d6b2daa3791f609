package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/cmd/kubectl-nginx/printer"
)

// fieldOwner is the field manager of restart, pause, resume, and rollback.
const fieldOwner = client.FieldOwner("kubectl-nginx")

type waitFlags struct {
	wait    bool
	timeout time.Duration
}

func (f *waitFlags) add(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.wait, "wait", false, "wait until the instance is Ready; fail if it becomes Degraded")
	cmd.Flags().DurationVar(&f.timeout, "timeout", 5*time.Minute, "maximum time to wait, with --wait")
}

func newRestart(c *cli) *cobra.Command {
	waiting := waitFlags{}
	cmd := &cobra.Command{
		Use:   "restart NAME",
		Short: "Restart all Pods of an instance with a rolling update",
		Long: `Restart all Pods of an instance with a rolling update. The command sets spec.forceRedeploy to
the current time, and changes nothing else. This also retries a change that was rolled back.`,
		Example: "  kubectl nginx restart web --wait",
	}

	c.onInstance(cmd, func(ctx context.Context, connected *connection, object *v1alpha2.NginxOperator) error {
		if object.Spec.Paused {
			return fmt.Errorf("NginxOperator %q is paused: the operator does not restart its Pods. "+
				"Resume it first: kubectl nginx resume %s -n %s", object.Name, object.Name, object.Namespace)
		}
		if err := connected.setField(ctx, object, "forceRedeploy", time.Now().UTC().Format(time.RFC3339)); err != nil {
			return err
		}
		return c.done(ctx, connected, object, "restarted", &waiting)
	})

	waiting.add(cmd)
	return cmd
}

func newPause(c *cli, pause bool) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "pause NAME",
		Short: "Stop the operator from changing an instance",
		Long:  "Stop the operator from changing or restoring the child objects of an instance. It keeps reporting status.",
	}

	word, unchanged := "paused", "already paused"
	var value any = true
	waiting := waitFlags{}
	if !pause {
		word, unchanged, value = "resumed", "not paused", nil // null removes the field
		cmd.Use, cmd.Short = "resume NAME", "Let the operator manage a paused instance again"
		cmd.Long = "Let the operator apply pending changes of a paused instance, and manage it again."
		waiting.add(cmd)
	}

	c.onInstance(cmd, func(ctx context.Context, connected *connection, object *v1alpha2.NginxOperator) error {
		if object.Spec.Paused == pause {
			return fmt.Errorf("NginxOperator %q is %s", object.Name, unchanged)
		}
		if err := connected.setField(ctx, object, "paused", value); err != nil {
			return err
		}
		return c.done(ctx, connected, object, word, &waiting)
	})

	return cmd
}

// setField sets a field of the spec. The UID makes a change of another object fail.
func (c *connection) setField(ctx context.Context, object *v1alpha2.NginxOperator, field string, value any) error {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": object.UID},
		"spec":     map[string]any{field: value},
	})
	if err != nil {
		return err
	}
	return c.Patch(ctx, object, client.RawPatch(types.MergePatchType, patch), fieldOwner)
}

// done prints the result as kubectl does, and waits if the flags request it.
func (c *cli) done(ctx context.Context, connected *connection, object *v1alpha2.NginxOperator, word string, waiting *waitFlags) error {
	if _, err := fmt.Fprintf(c.Out, "nginxoperator.operator.example.com/%s %s\n", object.Name, word); err != nil || !waiting.wait {
		return err
	}

	ready, err := connected.waitUntilReady(ctx, object, waiting.timeout)
	if err == nil {
		_, err = fmt.Fprintf(c.Out, "nginxoperator.operator.example.com/%s is ready: %s\n", object.Name, printer.Line(ready))
	}
	return err
}

func (c *connection) waitUntilReady(ctx context.Context, object *v1alpha2.NginxOperator, timeout time.Duration) (string, error) {
	message := "the operator has not reconciled the change"
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err := wait.PollUntilContextCancel(ctx, time.Second, true, func(ctx context.Context) (bool, error) {
		current, err := c.instance(ctx, object.Name)
		if err != nil {
			return false, err
		}
		if current.UID != object.UID {
			return false, errors.New("the NginxOperator was deleted while waiting")
		}
		if current.Status.ObservedGeneration < object.Generation {
			return false, nil
		}

		if ready := meta.FindStatusCondition(current.Status.Conditions, v1alpha2.ConditionReady); ready != nil {
			message = ready.Message
			if ready.Status == metav1.ConditionTrue {
				return true, nil
			}
		}

		degraded := meta.FindStatusCondition(current.Status.Conditions, v1alpha2.ConditionDegraded)
		if degraded != nil && degraded.Status == metav1.ConditionTrue {
			return false, fmt.Errorf("NginxOperator %q is Degraded: %s: %s", object.Name, degraded.Reason, printer.Line(degraded.Message))
		}

		return false, nil
	})
	if err != nil && ctx.Err() != nil { // a canceled request has more than one kind of error
		err = fmt.Errorf("timed out waiting for NginxOperator %q to be ready: %s", object.Name, printer.Line(message))
	}
	return message, err
}
