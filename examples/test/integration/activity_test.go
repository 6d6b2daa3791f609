package integration

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/examples/activity/api/v1"
)

// newActivity returns the document's sample.
func newActivity(namespace, name string) *v1.Activity {
	return &v1.Activity{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: v1.ActivitySpec{
			Command:  "sleep 5 && echo done in $PWD as $(id -u) with $GREETING",
			Execuser: "1000",
			Execcwd:  "/tmp",
			Envs:     []string{"GREETING=hello"},
		},
	}
}

// waitForProsta waits until the status of an Activity has a state.
func waitForProsta(t *testing.T, activity *v1.Activity, want v1.Prosta) {
	t.Helper()
	waitFor(t, func() error {
		if err := suite.admin.Get(t.Context(), client.ObjectKeyFromObject(activity), activity); err != nil {
			return err
		}
		if activity.Status.Prosta != want {
			return fmt.Errorf("%s: want %s, got %+v", activity.Name, want, activity.Status)
		}
		return nil
	})
}

// podsOf returns the Pods of an Activity.
func podsOf(t *testing.T, activity *v1.Activity) []corev1.Pod {
	t.Helper()
	list := &corev1.PodList{}
	must(t, suite.admin.List(t.Context(), list, client.InNamespace(activity.Namespace)))
	return slices.DeleteFunc(list.Items, func(pod corev1.Pod) bool { return !metav1.IsControlledBy(&pod, activity) })
}

// waitForPod waits until an Activity has one Pod, held or let go.
func waitForPod(t *testing.T, activity *v1.Activity, held bool) *corev1.Pod {
	t.Helper()
	var pods []corev1.Pod
	waitFor(t, func() error {
		if pods = podsOf(t, activity); len(pods) != 1 || (len(pods[0].Finalizers) > 0) != held {
			return fmt.Errorf("%s: want one Pod, held %t, got %+v", activity.Name, held, pods)
		}
		return nil
	})
	return &pods[0]
}

// countPods counts the Pods that are made in a namespace from now on. The returned function tells how many of each name there
// were until its call. It watches, because the audit log does not tell what became of a request whose client was killed.
func countPods(t *testing.T, namespace string) (made func() map[string]int) {
	t.Helper()
	watching, err := suite.admin.Watch(t.Context(), &corev1.PodList{}, client.InNamespace(namespace))
	must(t, err)
	names := make(chan string, 1000)
	go func() {
		defer close(names)
		for event := range watching.ResultChan() {
			if pod, ok := event.Object.(*corev1.Pod); ok && event.Type == watch.Added {
				names <- pod.Name
			}
		}
	}()
	return func() map[string]int {
		t.Helper()
		last := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "the-last-one"}}
		last.Spec.Containers = []corev1.Container{{Name: "a", Image: "i"}}
		create(t, last)
		out := map[string]int{}
		for deadline := time.After(patience); ; {
			select {
			case name, open := <-names:
				if !open {
					t.Fatal("the watch ended")
				}
				if name == last.Name {
					return out
				}
				out[name]++
			case <-deadline:
				t.Fatal("the watch does not tell of the last Pod")
			}
		}
	}
}

var began = metav1.NewTime(time.Date(2024, 1, 2, 3, 4, 5, 0, time.UTC))

func runningStatus() corev1.PodStatus {
	return corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{{
		Name: "activity", Image: "i", ImageID: "i", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: began}},
	}}}
}

func endedStatus(code int32) corev1.PodStatus {
	phase := corev1.PodSucceeded
	if code != 0 {
		phase = corev1.PodFailed
	}
	return corev1.PodStatus{Phase: phase, ContainerStatuses: []corev1.ContainerStatus{{
		Name: "activity", Image: "i", ImageID: "i", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			ExitCode: code, StartedAt: began, FinishedAt: metav1.NewTime(began.Add(5 * time.Second)),
		}},
	}}}
}

// barrier returns when the manager has handled all events about Activities that were sent before: one that was made after
// them has its Pod.
func barrier(t *testing.T, namespace string) {
	t.Helper()
	last := newActivity(namespace, "barrier")
	last.Name, last.GenerateName = "", "barrier-"
	create(t, last)
	waitForPod(t, last, false)
}

// The document, step by step; the tests play the kubelet.
func TestActivityWalkThrough(t *testing.T) {
	namespace := newNamespace(t)
	activity := newActivity(namespace, "activity-sample")
	create(t, activity)
	waitForProsta(t, activity, v1.Pending)
	pod := waitForPod(t, activity, false)
	if pod.Spec.RestartPolicy != corev1.RestartPolicyNever || activity.Status.Pod != pod.Name {
		t.Errorf("restartPolicy %s, the status names Pod %q of %q", pod.Spec.RestartPolicy, activity.Status.Pod, pod.Name)
	}
	path := "/apis/ego.example.com/v1/namespaces/" + namespace + "/activities/activity-sample"
	if shown := columns(t, path); shown["Prosta"] != "Pending" || shown["Exit"] != nil {
		t.Errorf("kubectl get shows %v", shown)
	}
	report(t, pod, runningStatus())
	waitForProsta(t, activity, v1.Running)
	if !activity.Status.StartTime.Equal(&began) {
		t.Errorf("status %+v", activity.Status)
	}
	report(t, pod, endedStatus(3))
	waitForProsta(t, activity, v1.Failed)
	if shown := columns(t, path); shown["Prosta"] != "Failed" || fmt.Sprint(shown["Exit"]) != "3" {
		t.Errorf("kubectl get shows %v", shown)
	}
	final := activity.Status
	if final.FinishTime.Sub(final.StartTime.Time) != 5*time.Second {
		t.Errorf("status %+v", final)
	}
	remove(t, pod)
	barrier(t, namespace)
	if diff := cmp.Diff(final, read(t, activity).Status); diff != "" || len(podsOf(t, activity)) != 0 {
		t.Errorf("after the deletion of the Pod there are %d, status (-was +is):\n%s", len(podsOf(t, activity)), diff)
	}
	waitForEvents(t, activity, fmt.Sprintf("Normal Created runs in Pod %q", pod.Name), "Warning Failed exit code 3")
}

// An unknown host ends in the status, and nothing goes on about it; a known one is asked of the scheduler.
func TestActivityHost(t *testing.T) {
	namespace := newNamespace(t)
	unknown, known := newActivity(namespace, "unknown"), newActivity(namespace, "known")
	unknown.Spec.Host, known.Spec.Host = "node-9", namespace
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	create(t, node, unknown, known)
	t.Cleanup(func() { remove(t, node) })
	waitForProsta(t, unknown, v1.Failed)
	const message = `host "node-9" is no node of this cluster; create the Activity again with a host of kubectl get nodes, or without one`
	if unknown.Status.Message != message || unknown.Status.Pod != "" {
		t.Errorf("status %+v", unknown.Status)
	}
	waitForEvents(t, unknown, "Warning Failed "+message)
	pod := waitForPod(t, known, false)
	fields := pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].MatchFields
	if len(fields) != 1 || !slices.Equal(fields[0].Values, []string{namespace}) {
		t.Errorf("the Pod may run on %+v", fields)
	}
	before := settled(t, "activity")
	time.Sleep(2 * time.Second)
	if n := passes(t, "activity") - before; n != 0 {
		t.Errorf("%d passes in 2 s in which nothing happened", n)
	}
}

// What Pod Security forbids is said in the status, and done as soon as it is allowed.
func TestActivityForbidden(t *testing.T) {
	namespace := newNamespace(t)
	enforce := func(level string) {
		update(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, func(n *corev1.Namespace) {
			n.Labels["pod-security.kubernetes.io/enforce"] = level
		})
	}
	enforce("restricted")
	asRoot, asUser := newActivity(namespace, "as-root"), newActivity(namespace, "as-user")
	asRoot.Spec.Execuser = ""
	create(t, asRoot, asUser)
	waitForPod(t, asUser, false)
	waitForProsta(t, asRoot, v1.Pending)
	if !strings.Contains(asRoot.Status.Message, "violates PodSecurity") || asRoot.Status.Pod != "" {
		t.Errorf("status %+v", asRoot.Status)
	}
	enforce("privileged")
	waitForPod(t, asRoot, false)
	if waitForProsta(t, asRoot, v1.Pending); asRoot.Status.Message != "" {
		t.Errorf("status %+v", asRoot.Status)
	}
}

// What runs once is not changed.
func TestActivityIsImmutable(t *testing.T) {
	activity := newActivity(newNamespace(t), "a")
	create(t, activity)
	waitForPod(t, activity, false)
	read(t, activity).Spec.Command = "true"
	err := suite.admin.Update(t.Context(), activity)
	if err == nil || !strings.Contains(err.Error(), "an Activity runs once, so its spec cannot be changed; create another Activity") {
		t.Errorf("got %v", err)
	}
}
