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
)

// waitFlags say whether to wait for what a change comes to.
type waitFlags struct {
	wait    bool
	timeout time.Duration
}

func (f *waitFlags) add(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.wait, "wait", false, "wait until the instance is Ready, and fail where it becomes Degraded")
	cmd.Flags().DurationVar(&f.timeout, "timeout", 5*time.Minute, "how long to wait")
}

func newRestart(c *cli) *cobra.Command {
	waiting := waitFlags{}
	cmd := &cobra.Command{
		Use:   "restart NAME",
		Short: "Replace all Pods of an instance by a rolling update",
		Long: `Replace all Pods of an instance by a rolling update that changes nothing else:
spec.forceRedeploy becomes the current time. A change that was taken back is tried again with
it.`,
		Example: "  kubectl nginx restart web --wait",
	}
	c.onInstance(cmd, func(ctx context.Context, connected *connection, object *v1alpha2.NginxOperator) error {
		if object.Spec.Paused {
			return fmt.Errorf("NginxOperator %q is paused, so nothing would be restarted: kubectl nginx resume %s", object.Name, object.Name)
		}
		now := time.Now().UTC().Format(time.RFC3339)
		if err := connected.setField(ctx, object, "forceRedeploy", now); err != nil {
			return err
		}
		return c.done(ctx, connected, object, "restarted", &waiting)
	})
	waiting.add(cmd)
	return cmd
}

// newPause returns the command pause, or resume.
func newPause(c *cli, pause bool) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "pause NAME",
		Short: "Have the operator leave an instance alone",
		Long:  "Have the operator change no child of an instance, and restore none, until it is resumed. It goes on to report.",
	}
	word := "paused"
	waiting := waitFlags{}
	if !pause {
		word = "resumed"
		cmd.Use, cmd.Short = "resume NAME", "Have the operator look after an instance again"
		cmd.Long = "Have the operator bring the children of a paused instance to what it declares by now, and look after it again."
		waiting.add(cmd)
	}
	c.onInstance(cmd, func(ctx context.Context, connected *connection, object *v1alpha2.NginxOperator) error {
		if object.Spec.Paused == pause {
			state := map[bool]string{true: "already paused", false: "not paused"}[pause]
			return fmt.Errorf("NginxOperator %q is %s", object.Name, state)
		}
		var value any // null removes the field
		if pause {
			value = true
		}
		if err := connected.setField(ctx, object, "paused", value); err != nil {
			return err
		}
		return c.done(ctx, connected, object, word, &waiting)
	})
	return cmd
}

// setField sets a field of the spec of this object and of no later one of its name.
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

// done says what was done as kubectl does, and waits where that is asked for.
func (c *cli) done(ctx context.Context, connected *connection, object *v1alpha2.NginxOperator, word string, waiting *waitFlags) error {
	if _, err := fmt.Fprintf(c.Out, "nginxoperator.operator.example.com/%s %s\n", object.Name, word); err != nil || !waiting.wait {
		return err
	}
	ready, err := connected.waitUntilReady(ctx, object, waiting.timeout)
	if err == nil {
		_, err = fmt.Fprintf(c.Out, "nginxoperator.operator.example.com/%s is ready: %s\n", object.Name, ready)
	}
	return err
}

// waitUntilReady waits until the generation of an object is Ready, and returns the message of that.
func (c *connection) waitUntilReady(ctx context.Context, object *v1alpha2.NginxOperator, timeout time.Duration) (string, error) {
	said := "the operator has not seen the change yet"
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err := wait.PollUntilContextCancel(ctx, time.Second, true, func(ctx context.Context) (bool, error) {
		now, err := c.instance(ctx, object.Name)
		if err != nil {
			return false, err
		}
		if now.UID != object.UID {
			return false, errors.New("the NginxOperator was deleted meanwhile")
		}
		if now.Status.ObservedGeneration < object.Generation {
			return false, nil
		}
		if ready := meta.FindStatusCondition(now.Status.Conditions, v1alpha2.ConditionReady); ready != nil {
			said = ready.Message
			if ready.Status == metav1.ConditionTrue {
				return true, nil
			}
		}
		degraded := meta.FindStatusCondition(now.Status.Conditions, v1alpha2.ConditionDegraded)
		if degraded != nil && degraded.Status == metav1.ConditionTrue {
			return false, fmt.Errorf("NginxOperator %q is Degraded: %s: %s", object.Name, degraded.Reason, degraded.Message)
		}
		return false, nil
	})
	if err != nil && ctx.Err() != nil { // a request that the timeout ends fails in more than one way
		err = fmt.Errorf("timed out waiting for NginxOperator %q to be ready: %s", object.Name, said)
	}
	return said, err
}
