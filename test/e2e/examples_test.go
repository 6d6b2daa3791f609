package e2e

// The four examples (examples/), deployed with kustomize as their README describes, with real Pods.
// They are independent of the operator, so they run in parallel with the upgrades of the operator,
// which mostly wait for OLM.
//
//   - The steps in the README of each example work exactly as shown.
//   - A Foo is happy after its Pod is created.
//   - An Activity runs on its declared node, as the declared user and group, and its status has the
//     exit code.
//   - A changed image of a SidecarSet is rolled out to running Pods one at a time: never are two
//     Pods unavailable, no Pod is recreated, and no other container restarts.
//   - Pods are also created if the webhook does not run.

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/examples/sidecarset/sidecar"
	"github.com/example/nginx-operator/examples/test/walkthrough"
)

const (
	// examplesName is the prefix of all cluster-scoped names in examples/config.
	examplesName       = "nginx-operator-examples"
	examplesNamespace  = examplesName + "-system"
	examplesDeployment = "deployment/" + examplesName + "-controller-manager"
)

func TestExamples(t *testing.T) {
	t.Parallel()
	deployExamples(t)
	for _, example := range walkthrough.Examples {
		t.Run(example.Kind, func(t *testing.T) {
			var shown strings.Builder
			show := func(command, output string) { fmt.Fprintf(&shown, "$ %s\n%s", command, output) }
			if err := walkthrough.Run(t.Context(), suite.repository, example, show); err != nil {
				t.Logf("--- all steps\n%s\n%s", shown.String(), reportExamples("default"))
				t.Error(err)
			}
		})
	}
	t.Run("Foo with its Pod", testFoo)
	t.Run("Activity as it was asked for", testActivity)
	t.Run("SidecarSet one Pod at a time", testOnePodAtATime)
	t.Run("SidecarSet without the webhook", testWithoutTheWebhook)
}

// deployExamples does the same as `make examples-deploy`. It fails if another user runs the
// examples on the cluster.
func deployExamples(t *testing.T) {
	t.Helper()
	if !suite.local {
		namespace := &corev1.Namespace{}
		err := suite.admin.Get(t.Context(), client.ObjectKey{Name: examplesNamespace}, namespace)
		if err == nil && namespace.Labels[testLabel] == "" {
			t.Fatalf("the cluster is in use, the examples are in namespace %s: take them away with `make examples-undeploy`", examplesNamespace)
		}
		must(t, client.IgnoreNotFound(err))
	}
	config := filepath.Join(suite.delivery, "examples", "config")
	kubectl(t, "apply", "--server-side", "-k", config)
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		if out, err := command(ctx, "kubectl", "delete", "--ignore-not-found", "--timeout=2m", "-k", config); err != nil {
			t.Errorf("failed to remove the examples: %v\n%s", err, out)
		}
	})
	kubectl(t, "label", "--overwrite", "namespace", examplesNamespace, testLabel+"="+madeByExamples)
	kubectl(t, "rollout", "status", "-n", examplesNamespace, "--timeout=2m", examplesDeployment)
}

// reportExamples returns the state of a namespace and the last log lines of the examples.
func reportExamples(namespace string) string {
	var out strings.Builder
	for _, args := range [][]string{
		{"get", "-n", namespace, "foos,activities,myapps,sidecarsets,deployments,pods", "-o", "wide"},
		{"get", "-n", namespace, "events", "--sort-by=.metadata.creationTimestamp"},
		{"logs", "-n", examplesNamespace, "-l", "app.kubernetes.io/component=controller-manager", "--prefix", "--tail=40"},
	} {
		text, err := command(context.Background(), "kubectl", args...)
		fmt.Fprintf(&out, "--- kubectl %s\n%s\n", strings.Join(args, " "), text)
		if err != nil {
			fmt.Fprintln(&out, err)
		}
	}
	return out.String()
}

func testFoo(t *testing.T) {
	namespace := newNamespaceOf(t, baseline, madeByExamples)
	friend := "friend-of-" + namespace
	applyText(t, fmt.Sprintf(`
apiVersion: tutorial.my.domain/v1
kind: Foo
metadata: {name: foo, namespace: %s}
spec: {name: %s}
`, namespace, friend))
	foo := objectOf("tutorial.my.domain/v1", "Foo", "foo")
	foo.SetNamespace(namespace)
	becomes := func(want bool) time.Duration {
		return waitFor(t, namespace, fmt.Sprintf("Foo to have happy: %t", want), restoreLimit, func(ctx context.Context) error {
			if err := suite.admin.Get(ctx, client.ObjectKeyFromObject(foo), foo); err != nil {
				return err
			}
			if happy, said, _ := unstructured.NestedBool(foo.Object, "status", "happy"); !said || happy != want {
				return fmt.Errorf("its status is %v", foo.Object["status"])
			}
			return nil
		})
	}
	becomes(false)
	must(t, suite.admin.Create(t.Context(), selectedPod(namespace, friend)))
	t.Logf("FIGURE a Foo is happy %d ms after its Pod's arrival", becomes(true).Milliseconds())
}

func testActivity(t *testing.T) {
	namespace := newNamespaceOf(t, restricted, madeByExamples)
	// A scheduler could choose the last of several nodes for its own reasons.
	host := firstNode(t).Name
	applyText(t, fmt.Sprintf(`
apiVersion: ego.example.com/v1
kind: Activity
metadata: {name: asked, namespace: %s}
spec:
  command: 'echo "$(id -u):$(id -g) in $PWD with $ONE"; exit 7'
  host: %s
  execuser: "1000:2000"
  execcwd: /tmp
  envs: ['ONE=$(id) $$ = two']
`, namespace, host))
	activity := objectOf("ego.example.com/v1", "Activity", "asked")
	activity.SetNamespace(namespace)
	waitFor(t, namespace, "the Activity to end", patience, func(ctx context.Context) error {
		if err := suite.admin.Get(ctx, client.ObjectKeyFromObject(activity), activity); err != nil {
			return err
		}
		if prosta := text(activity, "status", "prosta"); prosta != "Failed" {
			return fmt.Errorf("it is %s: %s", prosta, text(activity, "status", "message"))
		}
		return nil
	})
	if code, _, _ := unstructured.NestedInt64(activity.Object, "status", "exitCode"); code != 7 {
		t.Errorf("the exit code is %d", code)
	}
	for _, field := range []string{"startTime", "finishTime"} {
		if _, err := time.Parse(time.RFC3339, text(activity, "status", field)); err != nil {
			t.Errorf("%s: %v", field, err)
		}
	}
	pod := &corev1.Pod{}
	must(t, suite.admin.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: text(activity, "status", "pod")}, pod))
	if pod.Spec.NodeName != host {
		t.Errorf("it ran on %s instead of %s", pod.Spec.NodeName, host)
	}
	if said, want := kubectl(t, "logs", "-n", namespace, pod.Name), "1000:2000 in /tmp with $(id) $$ = two\n"; said != want {
		t.Errorf("it said %q, want %q", said, want)
	}
}

// newSidecarSet creates a SidecarSet for the Pods of one namespace, and waits until they get its
// container.
func newSidecarSet(t *testing.T, namespace string) *unstructured.Unstructured {
	t.Helper()
	applyText(t, fmt.Sprintf(`
apiVersion: apps.kruise.io/v1alpha1
kind: SidecarSet
metadata: {name: %[1]s}
spec:
  selector: {matchLabels: {of: %[1]s}}
  containers:
  - name: sidecar
    image: docker.io/library/busybox:latest
    imagePullPolicy: IfNotPresent
    command: [sh, -c, "trap exit TERM; sleep infinity & wait"]
`, namespace))
	set := objectOf("apps.kruise.io/v1alpha1", "SidecarSet", namespace)
	t.Cleanup(func() {
		if err := suite.admin.Delete(context.WithoutCancel(t.Context()), set); err != nil {
			t.Errorf("failed to delete the SidecarSet: %v", err)
		}
	})
	waitForInjection(t, namespace)
	return set
}

// selectedPod returns a Pod that the SidecarSet of its namespace selects.
func selectedPod(namespace, name string) *corev1.Pod {
	pod := &corev1.Pod{}
	pod.Namespace, pod.Name, pod.Labels = namespace, name, map[string]string{"of": namespace}
	pod.Spec.Containers = []corev1.Container{{
		Name: "app", Image: "docker.io/library/busybox:1.36", Command: []string{"sh", "-c", "trap exit TERM; sleep infinity & wait"},
	}}
	return pod
}

func waitForInjection(t *testing.T, namespace string) {
	t.Helper()
	waitFor(t, examplesNamespace, "Pods to get a sidecar", patience, func(ctx context.Context) error {
		pod := selectedPod(namespace, "probe")
		if err := suite.admin.Create(ctx, pod, client.DryRunAll); err != nil || len(pod.Spec.Containers) == 2 {
			return err
		}
		return errors.New("they get none")
	})
}

// counted returns an error unless the status of a SidecarSet has these numbers for its current
// generation.
func counted(ctx context.Context, set *unstructured.Unstructured, matched, updated, ready int64) error {
	if err := suite.admin.Get(ctx, client.ObjectKeyFromObject(set), set); err != nil {
		return err
	}
	for field, want := range map[string]int64{
		"matchedPods": matched, "updatedPods": updated, "readyPods": ready, "observedGeneration": set.GetGeneration(),
	} {
		if got, _, _ := unstructured.NestedInt64(set.Object, "status", field); got != want {
			return fmt.Errorf("%s is %d, want %d", field, got, want)
		}
	}
	return nil
}

func testOnePodAtATime(t *testing.T) {
	namespace := newNamespaceOf(t, baseline, madeByExamples)
	set := newSidecarSet(t, namespace)
	const count = 3
	for i := range count {
		must(t, suite.admin.Create(t.Context(), selectedPod(namespace, fmt.Sprint("pod-", i))))
	}
	waitFor(t, namespace, "the Pods to be counted", patience, func(ctx context.Context) error {
		return counted(ctx, set, count, count, count)
	})
	before := map[string]types.UID{}
	eachPod(t, namespace, func(pod *corev1.Pod) { before[pod.Name] = pod.UID })

	const image = "docker.io/library/busybox:1.36"
	update(t, set, func(set *unstructured.Unstructured) {
		containers, _, _ := unstructured.NestedSlice(set.Object, "spec", "containers")
		containers[0].(map[string]any)["image"] = image
		must(t, unstructured.SetNestedSlice(set.Object, containers, "spec", "containers"))
	})
	most := 0
	took := waitFor(t, namespace, "the image to be everywhere", installPatience, func(ctx context.Context) error {
		away := 0
		eachPod(t, namespace, func(pod *corev1.Pod) {
			if !sidecar.Ready(pod) || !sidecar.Settled(pod) {
				away++
			}
		})
		most = max(most, away)
		return counted(ctx, set, count, count, count)
	})
	t.Logf("FIGURE another image in %d running Pods, one at a time: %s", count, seconds(took))
	if most != 1 {
		t.Errorf("%d Pods were away at a time", most)
	}
	waitFor(t, namespace, "the containers to be replaced", patience, func(context.Context) error {
		var errs []error
		eachPod(t, namespace, func(pod *corev1.Pod) {
			if !sidecar.Ready(pod) || !sidecar.Settled(pod) || pod.Spec.Containers[1].Image != image {
				errs = append(errs, fmt.Errorf("%s is not there yet", pod.Name))
			}
		})
		return errors.Join(errs...)
	})
	eachPod(t, namespace, func(pod *corev1.Pod) {
		if pod.UID != before[pod.Name] {
			t.Errorf("%s was recreated", pod.Name)
		}
		for _, status := range pod.Status.ContainerStatuses {
			if want := map[string]int32{"app": 0, "sidecar": 1}[status.Name]; status.RestartCount != want {
				t.Errorf("%s of %s was restarted %d times", status.Name, pod.Name, status.RestartCount)
			}
		}
	})
}

func eachPod(t *testing.T, namespace string, visit func(*corev1.Pod)) {
	t.Helper()
	pods := &corev1.PodList{}
	must(t, suite.admin.List(t.Context(), pods, client.InNamespace(namespace)))
	for i := range pods.Items {
		visit(&pods.Items[i])
	}
}

func testWithoutTheWebhook(t *testing.T) {
	namespace := newNamespaceOf(t, baseline, madeByExamples)
	set := newSidecarSet(t, namespace)
	must(t, suite.admin.Create(t.Context(), selectedPod(namespace, "with")))
	kubectl(t, "scale", "-n", examplesNamespace, "--replicas=0", examplesDeployment)
	kubectl(t, "wait", "-n", examplesNamespace, "--for=delete", "--timeout=1m", "pods", "-l", "app.kubernetes.io/component=controller-manager")
	bare := selectedPod(namespace, "bare")
	began := time.Now()
	must(t, suite.admin.Create(t.Context(), bare))
	t.Logf("FIGURE a Pod is created without the webhook after %s", seconds(time.Since(began)))
	if len(bare.Spec.Containers) != 1 {
		t.Errorf("it has the containers %+v", bare.Spec.Containers)
	}
	kubectl(t, "scale", "-n", examplesNamespace, "--replicas=2", examplesDeployment)
	kubectl(t, "rollout", "status", "-n", examplesNamespace, "--timeout=2m", examplesDeployment)
	waitForInjection(t, namespace)
	// Pods without the sidecar are not counted.
	waitFor(t, namespace, "the Pod to be counted", patience, func(ctx context.Context) error { return counted(ctx, set, 1, 1, 1) })
}
