package integration

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/test/harness"
)

const (
	nextImage = "registry.example.com/nginx:next"
	ownImage  = "registry.example.com/nginx:own"
)

// testFleet is a set of instances for which the test plays the Deployment controller.
type testFleet struct {
	namespace string
	// atOnce is the largest number of instances that rolled at the same time.
	atOnce int
}

// newTestFleet creates instances with one replica each, and waits until they are Ready.
func newTestFleet(t *testing.T, instances int, change func(*v1alpha2.NginxOperator)) *testFleet {
	t.Helper()
	f := &testFleet{namespace: newNamespace(t)}
	for i := range instances {
		object := newInstance(f.namespace, fmt.Sprintf("web-%02d", i))
		change(object)
		create(t, object)
	}
	for i := range instances {
		name := fmt.Sprintf("web-%02d", i)
		waitForChildren(t, f.namespace, name)
		makeReady(t, f.namespace, name)
	}
	return f
}

// restart kills the operator and starts the next one. The environment may give it another default
// image, like another release.
func (f *testFleet) restart(t *testing.T, env ...string) {
	t.Helper()
	must(t, suite.operator.KillLeader(suite.admin))
	suite.operator = must1(startOperator(env...))(t)
}

// matching returns the names of the Deployments for which a function returns true, in order.
func (f *testFleet) matching(ctx context.Context, is func(*appsv1.Deployment) bool) ([]string, error) {
	list := &appsv1.DeploymentList{}
	if err := suite.admin.List(ctx, list, client.InNamespace(f.namespace)); err != nil {
		return nil, err
	}
	var out []string
	for i := range list.Items {
		if is(&list.Items[i]) {
			out = append(out, list.Items[i].Name)
		}
	}
	slices.Sort(out)
	return out, nil
}

func hasImage(image string) func(*appsv1.Deployment) bool {
	return func(d *appsv1.Deployment) bool { return d.Spec.Template.Spec.Containers[0].Image == image }
}

// rolls reports whether the operator has changed a Deployment since the test last wrote its status.
func rolls(d *appsv1.Deployment) bool { return d.Status.ObservedGeneration < d.Generation }

// waitForRolling waits until exactly want instances roll, and requires that this stays so until the
// operator is idle. If among is not empty, only these instances may roll. It returns the names of
// the rolling instances.
func (f *testFleet) waitForRolling(t *testing.T, want int, among ...string) []string {
	t.Helper()
	var found []string
	look := func() error {
		var err error
		if found, err = f.matching(t.Context(), rolls); err != nil {
			return err
		}
		f.atOnce = max(f.atOnce, len(found))
		wrong := slices.ContainsFunc(found, func(name string) bool { return len(among) > 0 && !slices.Contains(among, name) })
		if len(found) != want || wrong {
			return fmt.Errorf("%v roll, want %d of %v", found, want, among)
		}
		return nil
	}
	waitFor(t, look)
	waitForIdle(t)
	must(t, look())
	return found
}

// rollAll completes each rollout that starts until a function returns true for want Deployments. It
// takes both from one list. Between two lists, another rollout could start, and the test would not
// complete it.
func (f *testFleet) rollAll(t *testing.T, want int, is func(*appsv1.Deployment) bool) {
	t.Helper()
	waitFor(t, func() error {
		done := 0
		rolling, err := f.matching(t.Context(), func(d *appsv1.Deployment) bool {
			if is(d) {
				done++
			}
			return rolls(d)
		})
		if err != nil {
			return err
		}
		f.atOnce = max(f.atOnce, len(rolling))
		for _, name := range rolling {
			rollOut(t, f.namespace, name)
		}
		if done != want || len(rolling) > 0 {
			return fmt.Errorf("%d are done, want %d; %v roll", done, want, rolling)
		}
		return nil
	})
}

// waitForFleetMetric waits until the operator reports want instances in a state.
func waitForFleetMetric(t *testing.T, state string, want int) {
	t.Helper()
	waitFor(t, func() error {
		for _, sample := range must1(harness.Samples(scrape(t), "nginx_operator_fleet_rollout_instances"))(t) {
			if sample.Labels["state"] == state && int(sample.Value) == want {
				return nil
			}
		}
		return fmt.Errorf("the metrics do not tell %d instances in state %s", want, state)
	})
}

// waitsForFleet requires that an instance is Ready and waits for a rollout slot.
func (f *testFleet) waitsForFleet(t *testing.T, name string) {
	t.Helper()
	progressing := waitForCondition(t, f.namespace, name, v1alpha2.ConditionProgressing, metav1.ConditionTrue, v1alpha2.ReasonWaitingForFleet)
	if !strings.Contains(progressing.Message, nextImage) {
		t.Errorf("the message does not say what it waits for: %s", progressing.Message)
	}
	object := must1(waitForStatusOnce(t.Context(), f.namespace, name))(t)
	if !meta.IsStatusConditionTrue(object.Status.Conditions, v1alpha2.ConditionReady) || object.Status.Image != operandImage {
		t.Errorf("image %s, conditions %+v", object.Status.Image, object.Status.Conditions)
	}
}
