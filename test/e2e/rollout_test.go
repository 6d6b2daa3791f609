package e2e

// A release of the operator with another default image, under load.
//
//   - A bounded number of instances rolls at a time, the canary first. No request fails.
//   - An instance whose new Pods do not start is rolled back and stops the rollout of the others,
//     which keep serving. The OperatorCondition reports that.
//   - After the instance is fixed, the others follow automatically. The OperatorCondition reports
//     that as well.
//   - Two other tenants, one with a failing instance and one with a slow instance, both canaries,
//     block no other tenant at any time.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
	operatorfleet "github.com/example/nginx-operator/internal/fleet"
	"github.com/example/nginx-operator/internal/wellknown"
)

const (
	// rolloutLimit bounds the rollout of all instances.
	rolloutLimit = 10 * time.Minute
	// broken is the instance whose new Pods do not start. canary is the instance that rolls first.
	broken, canary = "broken", "canary"
)

// testFleetRollout has this number of instances, of which a tenth, but at least one, may roll at a
// time.
func testFleetRollout(t *testing.T, size int) {
	operator := suite.operatorNamespace
	namespace := newNamespace(t, restricted)
	attack := tenantsHoldFleet(t)
	objects := startFleet(t, namespace, size)
	one := objects[0]
	image := one.Status.Image
	var loads []*load
	for _, name := range []string{broken, canary, objects[size-1].Name} {
		loads = append(loads, startLoad(t, namespace, suite.reach.service(namespace, name, 8080)))
	}
	watched := watchRollout(t, namespace, max(1, size/10))

	setOperatorEnv(t, "RELATED_IMAGE_NGINX", otherImage)
	waitFor(t, namespace, "the broken instance to be taken back", rolloutLimit, func(ctx context.Context) error {
		return hasCondition(ctx, one, v1alpha2.ConditionDegraded, metav1.ConditionTrue, v1alpha2.ReasonRolledBack)
	})
	upgradeable := func(status metav1.ConditionStatus, reason string) {
		waitFor(t, operator, "OLM to be told "+reason, patience, func(ctx context.Context) error {
			found, err := upgradeableOf(ctx, operator, csvName())
			if err == nil && (found.Status != status || found.Reason != reason) {
				err = fmt.Errorf("the OperatorCondition has %v", found)
			}
			return err
		})
	}
	attack.holds(t)
	upgradeable(metav1.ConditionFalse, operatorfleet.ReasonStopped)
	var rolled []string
	settled := func(ctx context.Context) error {
		now, rolling, err := rolloutOf(ctx, namespace)
		if len(rolling) > 0 {
			err = errors.Join(err, fmt.Errorf("%v roll", rolling))
		}
		rolled = now
		return err
	}
	waitFor(t, namespace, "those that had begun to end", patience, settled)
	stopped := slices.Clone(rolled)
	holds(t, namespace, "a rollout that has stopped", 5*time.Second, func(ctx context.Context) error {
		if err := settled(ctx); err != nil || !slices.Equal(rolled, stopped) {
			return errors.Join(fmt.Errorf("%v have rolled, it was %v", rolled, stopped), err)
		}
		return nil
	})
	if slices.Contains(stopped, broken) {
		t.Errorf("%v have rolled", stopped)
	}
	for _, object := range objects[1:] {
		if !slices.Contains(stopped, object.Name) {
			must(t, hasCondition(t.Context(), object, v1alpha2.ConditionProgressing, metav1.ConditionTrue, v1alpha2.ReasonWaitingForFleet))
			must(t, hasCondition(t.Context(), object, v1alpha2.ConditionReady, metav1.ConditionTrue, ""))
		}
	}

	must(t, suite.admin.Create(t.Context(), newBackend(namespace)))
	began := time.Now()
	// DNS may cache the missing name for a while, so the rollout is retried until the instance
	// serves.
	waitFor(t, namespace, "the broken instance to serve", rolloutLimit, func(ctx context.Context) error {
		err := ready(ctx, one)
		if err != nil && len(one.Status.FailedRevisions) > 0 {
			update(t, one, func(o *v1alpha2.NginxOperator) { o.Spec.ForceRedeploy = time.Now().Format(time.RFC3339Nano) })
		}
		return err
	})
	waitFor(t, namespace, "all others to follow", rolloutLimit, func(ctx context.Context) error {
		err := settled(ctx)
		if len(rolled) != size {
			err = errors.Join(err, fmt.Errorf("%d of %d have rolled", len(rolled), size))
		}
		return err
	})
	t.Logf("FIGURE rollout of a release to %d instances: %d had rolled when one failed, the others took %s",
		size, len(stopped), seconds(time.Since(began)))
	attack.holds(t)
	attack.end(t)
	upgradeable(metav1.ConditionTrue, operatorfleet.ReasonIdle)
	for _, load := range loads {
		load.finish(t, namespace, "load on "+load.url+" while a release rolls the fleet")
	}
	watched(t)
	for _, object := range objects {
		waitForReady(t, object)
		if object.Status.Image == image {
			t.Errorf("%s still has %s", object.Name, image)
		}
	}

	for _, object := range objects {
		must(t, suite.admin.Delete(t.Context(), object))
	}
	setOperatorEnv(t, "", "")
	waitForInstall(t, operator)
}

// rolloutOf returns the names of the instances that have finished the rollout to the other image,
// and of the instances that are rolling.
func rolloutOf(ctx context.Context, namespace string) (rolled, rolling []string, err error) {
	list := &v1alpha2.NginxOperatorList{}
	if err := suite.admin.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return nil, nil, err
	}
	for i := range list.Items {
		status := &list.Items[i].Status
		progressing := meta.FindStatusCondition(status.Conditions, v1alpha2.ConditionProgressing)
		switch {
		case progressing != nil && progressing.Status == metav1.ConditionTrue && progressing.Reason != v1alpha2.ReasonWaitingForFleet:
			rolling = append(rolling, list.Items[i].Name)
		case strings.HasSuffix(status.Image, otherImage):
			rolled = append(rolled, list.Items[i].Name)
		}
	}
	slices.Sort(rolled)
	return rolled, rolling, nil
}

// watchRollout checks how many instances roll at a time, and whether the canary was the first. The
// returned function stops the checks and reports the problems.
func watchRollout(t *testing.T, namespace string, most int) func(*testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	problems := make(chan []string, 1)
	go func() {
		var seen []string
		first := true
		for ctx.Err() == nil {
			rolled, rolling, err := rolloutOf(ctx, namespace)
			// The broken instance frees its slot before its rollback is complete, so it does not
			// count.
			rolling = slices.DeleteFunc(rolling, func(name string) bool { return name == broken })
			if err == nil && len(rolling) > most {
				seen = append(seen, fmt.Sprintf("%v roll, %d may", rolling, most))
			}
			if begun := slices.Concat(rolled, rolling); err == nil && first && len(begun) > 0 {
				first = false
				if !slices.Equal(begun, []string{canary}) {
					seen = append(seen, fmt.Sprintf("%v began first", begun))
				}
			}
			select {
			case <-ctx.Done():
			case <-time.After(200 * time.Millisecond):
			}
		}
		problems <- seen
	}()
	return func(t *testing.T) {
		t.Helper()
		cancel()
		for _, problem := range <-problems {
			t.Error(problem)
		}
	}
}

// newBackend returns the Service that the configuration of the broken instance references.
func newBackend(namespace string) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "backend"},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}},
	}
}

// startFleet creates instances and waits until they are ready. The broken instance is the first
// one, and the canary the second.
func startFleet(t *testing.T, namespace string, size int) []*v1alpha2.NginxOperator {
	t.Helper()
	backend, one := newBackend(namespace), newObject(namespace, broken, 1)
	must(t, suite.admin.Create(t.Context(), backend))
	one.Spec.Config = &v1alpha2.Config{Inline: proxyTo(backend.Name)}
	must(t, suite.admin.Create(t.Context(), one))
	waitForReady(t, one)
	// nginx resolves its upstreams only when it starts. The running Pod keeps serving without this
	// Service, but a new Pod cannot start.
	must(t, suite.admin.Delete(t.Context(), backend))
	objects := []*v1alpha2.NginxOperator{one}
	for i := 1; i < size; i++ {
		object := newObject(namespace, fmt.Sprintf("web-%d", i), 1)
		if i == 1 {
			object.Name, object.Labels = canary, map[string]string{wellknown.LabelCanary: "true"}
		}
		must(t, suite.admin.Create(t.Context(), object))
		objects = append(objects, object)
	}
	for _, object := range objects {
		waitForReady(t, object)
	}
	return objects
}
