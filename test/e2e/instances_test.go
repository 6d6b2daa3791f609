package e2e

// The lifecycle of an instance.
//
//   - The basic samples of config/samples become ready. nginx serves its start page on port 80,
//     through the Service and on the Pod. `kubectl get` and `kubectl explain` show the documented
//     columns and fields.
//   - `kubectl wait --for=condition=Ready` immediately after a change returns only when the Pods
//     serve the change: the new port answers on the first try, and the old port no longer answers.
//     The Service follows as soon as the nodes do, and serves the old port until the last Pod that
//     served it is gone.
//   - `kubectl scale` works in both directions. With two or more replicas, a PodDisruptionBudget
//     exists.
//   - forceRedeploy replaces all Pods and writes no other child. A load through the Service loses
//     no request.
//   - Deleting the object deletes all its dependents.

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/wellknown"
)

func testSample(t *testing.T) {
	namespace := newNamespace(t, restricted)
	kubectl(t, "apply", "-n", namespace, "-k", filepath.Join(suite.delivery, "config", "samples"))
	waitWithKubectl(t, namespace, "instance")
	object := newObject(namespace, "instance", 1)
	must(t, ready(t.Context(), object))
	if ports := object.Spec.Ports; len(ports) != 1 || ports[0].Port != 80 || ptr.Deref(object.Spec.Replicas, 0) != 1 {
		t.Fatalf("the sample declares %+v, so what follows shows something else", object.Spec)
	}
	// status.url uses the DNS name of the Service.
	if want := fmt.Sprintf("http://instance.%s.svc", namespace); object.Status.URL != want {
		t.Errorf("status.url is %q, want %q", object.Status.URL, want)
	}
	serves(t, namespace, suite.reach.pod(onlyPod(t, object), 80))
	t.Logf("FIGURE Service of a new instance answers %s after Ready", seconds(serviceServes(t, namespace, "instance", 80)))

	waitWithKubectl(t, namespace, "greeter")
	answers(t, namespace, suite.reach.service(namespace, "greeter", 8080), "Hello from greeter-")
	serviceServes(t, namespace, "greeter", 8081)

	table := strings.Split(strings.TrimSpace(kubectl(t, "get", "ngx", "instance", "-n", namespace)), "\n")
	if got, want := strings.Join(strings.Fields(table[0]), " "), "NAME READY REPLICAS READY-REPLICAS IMAGE URL AGE"; got != want {
		t.Errorf("kubectl get has the columns %q, want %q", got, want)
	}
	row := strings.Fields(table[len(table)-1])
	want := []string{"instance", "True", "1", "1", object.Status.Image, object.Status.URL}
	if len(row) != len(want)+1 || strings.Join(row[:len(want)], " ") != strings.Join(want, " ") {
		t.Errorf("kubectl get has the row %q, want %q and the age", row, want)
	}
	explained := kubectl(t, "explain", "nginxoperator.spec.port", "--api-version=operator.example.com/v1alpha1")
	if !strings.Contains(explained, "port is the TCP port of the Service") {
		t.Errorf("kubectl explain does not say what port is:\n%s", explained)
	}

	if out := kubectl(t, "explain", "nginxoperator.spec.config.inline"); !strings.Contains(out, "inline is the configuration text") {
		t.Errorf("kubectl explain does not say what config.inline is:\n%s", out)
	}

	kubectl(t, "patch", "nginxoperators.v1alpha1.operator.example.com", "instance", "-n", namespace,
		"--type=merge", `--patch={"spec":{"port":8081}}`)
	waitWithKubectl(t, namespace, "instance")
	must(t, ready(t.Context(), object))
	pod := onlyPod(t, object)
	serves(t, namespace, suite.reach.pod(pod, 8081))
	refuses(t, namespace, suite.reach.pod(pod, 80))
	t.Logf("FIGURE Service of a moved instance answers %s after Ready", seconds(serviceServes(t, namespace, "instance", 8081)))
	// The Service serves the old port until the last Pod that served it is gone.
	waitForOnly(t, object, 1)
	old := suite.reach.service(namespace, "instance", 80)
	waitFor(t, namespace, old+" to answer no longer", serviceDelay, func(ctx context.Context) error {
		if fetchOnce(ctx, old) == nil {
			return fmt.Errorf("%s still serves", old)
		}
		return nil
	})
}

// waitWithKubectl waits with `kubectl wait`, as users do. kubectl enforces the time limit.
func waitWithKubectl(t *testing.T, namespace, name string) {
	t.Helper()
	_, err := command(t.Context(), "kubectl", "wait", "-n", namespace, "--for=condition=Ready",
		"--timeout="+patience.String(), "nginxoperator/"+name)
	if err != nil {
		fatal(t, namespace, "%v", err)
	}
}

func onlyPod(t *testing.T, object *v1alpha2.NginxOperator) *corev1.Pod {
	t.Helper()
	pods, err := podsOf(t.Context(), object)
	must(t, err)
	if len(pods) != 1 {
		fatal(t, object.Namespace, "%s has %d Pods", object.Name, len(pods))
	}
	return &pods[0]
}

func testScale(t *testing.T) {
	namespace := newNamespace(t, restricted)
	object := newInstance(t, namespace, "web", 1)
	for _, step := range []struct {
		replicas int32
		budget   bool
	}{{3, true}, {1, false}} {
		kubectl(t, "scale", "nginxoperator", "web", "-n", namespace, fmt.Sprintf("--replicas=%d", step.replicas))
		waitFor(t, namespace, fmt.Sprintf("%d replicas", step.replicas), patience, func(ctx context.Context) error {
			if err := ready(ctx, object); err != nil {
				return err
			}
			if object.Status.ReadyReplicas != step.replicas || object.Status.Replicas != step.replicas {
				return fmt.Errorf("the status has %d replicas, %d of them ready", object.Status.Replicas, object.Status.ReadyReplicas)
			}
			children, err := childrenOf(ctx, object)
			if _, found := children["PodDisruptionBudget"]; err == nil && found != step.budget {
				err = fmt.Errorf("with %d replicas: there is a PodDisruptionBudget: %t", step.replicas, found)
			}
			return err
		})
		serviceServes(t, namespace, "web", 8080)
	}
	// Scaling must not create a revision, because a new revision restarts the instance.
	sets := &appsv1.ReplicaSetList{}
	must(t, suite.admin.List(t.Context(), sets, client.InNamespace(namespace), client.MatchingLabels(wellknown.Selector("web"))))
	if len(sets.Items) != 1 {
		t.Errorf("scaling made %d revisions", len(sets.Items))
	}
}

func testForceRedeploy(t *testing.T) {
	namespace := newNamespace(t, restricted)
	object := newInstance(t, namespace, "web", 2)
	pods := uidsOf(t, object)
	before, err := childrenOf(t.Context(), object)
	must(t, err)
	load := startLoad(t, namespace, suite.reach.service(namespace, "web", 8080))
	began := time.Now()
	update(t, object, func(o *v1alpha2.NginxOperator) { o.Spec.ForceRedeploy = "once" })
	waitForNewPods(t, object, pods)
	t.Logf("FIGURE redeploy of 2 replicas: %s", seconds(time.Since(began)))
	// The load continues until the last old Pod has drained.
	waitForOnly(t, object, 2)
	load.finish(t, namespace, "load during a redeploy")
	after, err := childrenOf(t.Context(), object)
	must(t, err)
	// The loop skips the Deployment, which must change, and the PodDisruptionBudget, whose status
	// the disruption controller writes.
	for _, kind := range []string{"Service", "ConfigMap", "NetworkPolicy"} {
		if before[kind].GetResourceVersion() != after[kind].GetResourceVersion() || before[kind].GetUID() != after[kind].GetUID() {
			t.Errorf("a redeploy wrote the %s", kind)
		}
	}
	if before["PodDisruptionBudget"].GetGeneration() != after["PodDisruptionBudget"].GetGeneration() {
		t.Error("a redeploy changed the PodDisruptionBudget")
	}
	if now := after["Deployment"].GetGeneration(); now != before["Deployment"].GetGeneration()+1 {
		t.Errorf("the Deployment went from generation %d to %d: more than one change", before["Deployment"].GetGeneration(), now)
	}
}

func testDelete(t *testing.T) {
	namespace := newNamespace(t, restricted)
	object := newInstance(t, namespace, "web", 2)
	other := newInstance(t, namespace, "other", 1)
	must(t, suite.admin.Delete(t.Context(), object))
	waitFor(t, namespace, "everything of the object to be gone", patience, func(ctx context.Context) error {
		children, err := childrenOf(ctx, object)
		if err != nil {
			return err
		}
		for kind, child := range children {
			return fmt.Errorf("%s %s is still there", kind, child.GetName())
		}
		for _, list := range []client.ObjectList{&corev1.PodList{}, &appsv1.ReplicaSetList{}} {
			names, err := namesIn(ctx, namespace, list, client.MatchingLabels(wellknown.Selector("web")))
			if err != nil || len(names) > 0 {
				return errors.Join(fmt.Errorf("%T: %v are still there", list, names), err)
			}
		}
		return nil
	})
	waitForReady(t, other)
	serviceServes(t, namespace, "other", 8080)
}
