package integration

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/examples/activity/api/v1"
	"github.com/example/nginx-operator/test/harness"
	"github.com/example/nginx-operator/test/harness/apiserver"
)

// newActivity returns the sample of the source document.
func newActivity(t *testing.T, namespace, name string) *v1.Activity {
	t.Helper()
	return sample(t, "activity/sample/activity.yaml", &v1.Activity{}, namespace, name)
}

func waitForProsta(t *testing.T, activity *v1.Activity, want v1.Prosta) {
	t.Helper()
	waitUntil(t, &activity.Status, func() bool { return read(t, activity).Status.Prosta == want })
}

// podsOf returns the Pods in an Activity's namespace that the Activity controls.
func podsOf(t *testing.T, activity *v1.Activity) []corev1.Pod {
	t.Helper()
	list := &corev1.PodList{}
	must(t, suite.admin.List(t.Context(), list, client.InNamespace(activity.Namespace)))
	return slices.DeleteFunc(list.Items, func(pod corev1.Pod) bool { return !metav1.IsControlledBy(&pod, activity) })
}

// waitForPod waits until an Activity has exactly one Pod, with or without its scheduling gate.
func waitForPod(t *testing.T, activity *v1.Activity, isGated bool) *corev1.Pod {
	t.Helper()
	var pods []corev1.Pod
	waitUntil(t, &pods, func() bool {
		pods = podsOf(t, activity)
		return len(pods) == 1 && (len(pods[0].Spec.SchedulingGates) > 0) == isGated
	})
	return &pods[0]
}

// countRuns counts the Pods of a namespace without a scheduling gate, by name, until the returned
// function is called. It uses a watch, because the audit log does not show the result of a request
// whose client was killed.
func countRuns(t *testing.T, namespace string) (runs func() map[string]int) {
	t.Helper()
	events := harness.Must1(suite.admin.Watch(t.Context(), &corev1.PodList{}, client.InNamespace(namespace)))(t)
	counts := make(chan map[string]int, 1)
	go func() {
		out, seen := map[string]int{}, sets.New[types.UID]()
		for event := range events.ResultChan() {
			pod, isPod := event.Object.(*corev1.Pod)
			if !isPod || len(pod.Spec.SchedulingGates) > 0 || seen.Has(pod.UID) {
				continue
			}
			if pod.Name == "the-last-one" {
				break
			}
			seen.Insert(pod.UID)
			out[pod.Name]++
		}
		counts <- out
	}()
	return func() map[string]int {
		t.Helper()
		create(t, newPod(namespace, "the-last-one"))
		return <-counts
	}
}

// TestActivityRunsOnce checks that neither the deletion of the Pod nor a change of the spec runs
// the command again. The test acts as the kubelet.
func TestActivityRunsOnce(t *testing.T) {
	namespace := newNamespace(t)
	activity := newActivity(t, namespace, "activity-sample")
	create(t, activity)
	pod := waitForPod(t, activity, false)
	began := metav1.NewTime(time.Date(2024, 1, 2, 3, 4, 5, 0, time.UTC))
	ended := corev1.ContainerStateTerminated{ExitCode: 3, StartedAt: began, FinishedAt: metav1.NewTime(began.Add(5 * time.Second))}
	report(t, pod, corev1.PodStatus{Phase: corev1.PodFailed, ContainerStatuses: []corev1.ContainerStatus{
		{Name: "activity", Image: "i", ImageID: "i", State: corev1.ContainerState{Terminated: &ended}},
	}})
	waitForProsta(t, activity, v1.Failed)
	final := activity.Status
	if final.Pod != pod.Name || *final.ExitCode != 3 || !final.StartTime.Equal(&began) || !final.FinishTime.Equal(&ended.FinishedAt) {
		t.Errorf("status %+v", final)
	}
	remove(t, pod)
	// Once another Activity runs, the manager has handled all earlier events.
	last := newActivity(t, namespace, "last")
	create(t, last)
	waitForPod(t, last, false)
	if read(t, activity); !equality.Semantic.DeepEqual(activity.Status, final) || len(podsOf(t, activity)) != 0 {
		t.Errorf("after the deletion of the Pod there are %d, status %+v", len(podsOf(t, activity)), activity.Status)
	}
	waitForEvents(t, activity, fmt.Sprintf("Normal Created runs in Pod %q", pod.Name), "Warning Failed exit code 3")
	activity.Spec.Command = "true"
	if err := suite.admin.Update(t.Context(), activity); err == nil || !strings.Contains(err.Error(), "an Activity runs once") {
		t.Errorf("a change of the spec: %v", err)
	}
}

// TestActivityRefusals checks that an unknown host fails the Activity, and that a known host
// becomes a node affinity. If Pod Security forbids the Pod, the status contains the reason, and the
// Pod is created once Pod Security allows it.
func TestActivityRefusals(t *testing.T) {
	namespace := newNamespace(t)
	enforce := func(level string) {
		update(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, func(n *corev1.Namespace) {
			n.Labels["pod-security.kubernetes.io/enforce"] = level
		})
	}
	enforce("restricted")
	unknown, known, asRoot := newActivity(t, namespace, "unknown"), newActivity(t, namespace, "known"), newActivity(t, namespace, "as-root")
	unknown.Spec.Host, known.Spec.Host, asRoot.Spec.Execuser = "node-9", namespace, ""
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	create(t, node, unknown, known, asRoot)
	t.Cleanup(func() { remove(t, node) })
	waitForProsta(t, unknown, v1.Failed)
	const message = `host "node-9" is no node of this cluster; create the Activity again with a host of kubectl get nodes, or without one`
	if unknown.Status.Message != message || unknown.Status.Pod != "" {
		t.Errorf("status %+v", unknown.Status)
	}
	waitForEvents(t, unknown, "Warning Failed "+message)
	terms := waitForPod(t, known, false).Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	if len(terms) != 1 || !slices.Equal(terms[0].MatchFields[0].Values, []string{namespace}) {
		t.Errorf("the Pod may run on %+v", terms)
	}
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

// TestActivityKilledBeforeTheRecord kills the manager after it created the Pod and before it wrote
// the status. The command runs once, in this Pod or, if this Pod was deleted, in another one. To
// stop the manager at this point, the test removes its permission to write the status.
func TestActivityKilledBeforeTheRecord(t *testing.T) {
	role := read(t, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: operatorName + "-manager-role"}})
	whole := role.DeepCopy()
	withoutStatus := slices.DeleteFunc(whole.DeepCopy().Rules, func(rule rbacv1.PolicyRule) bool {
		return slices.Contains(rule.Resources, "activities/status")
	})
	access := authorizationv1.SubjectAccessReviewSpec{User: operatorUser, ResourceAttributes: &authorizationv1.ResourceAttributes{
		Group: v1.GroupVersion.Group, Resource: "activities", Subresource: "status", Verb: "patch",
	}}
	permit := func(rules []rbacv1.PolicyRule) {
		update(t, role, func(role *rbacv1.ClusterRole) { role.Rules = rules })
	}
	defer permit(whole.Rules)
	for name, meanwhile := range map[string]func(*testing.T, client.Object){
		"stays":   func(*testing.T, client.Object) {},
		"deleted": remove,
	} {
		namespace := newNamespace(t)
		runs, activity := countRuns(t, namespace), newActivity(t, namespace, name)
		permit(withoutStatus)
		must(t, apiserver.AwaitAccess(t.Context(), suite.admin, access, false))
		create(t, activity)
		before := waitForPod(t, activity, true)
		suite.operator.Kill()
		meanwhile(t, before)
		permit(whole.Rules)
		must(t, startOperator())
		after := waitForPod(t, activity, false)
		if counts := runs(); counts[after.Name] != 1 || len(counts) != 1 || (before.UID == after.UID) != (name == "stays") {
			t.Errorf("%s: runs: %v, Pod %s, then %s", name, counts, before.UID, after.UID)
		}
		report(t, after, corev1.PodStatus{Phase: corev1.PodSucceeded})
		waitForProsta(t, activity, v1.Succeeded)
	}
}

// TestActivityKilledAtAnyTime kills the operator repeatedly under load, and deletes every Pod each
// time. No command runs twice.
func TestActivityKilledAtAnyTime(t *testing.T) {
	namespace := newNamespace(t)
	runs := countRuns(t, namespace)
	var all []*v1.Activity
	for round := range 5 {
		for i := range 10 {
			all = append(all, newActivity(t, namespace, fmt.Sprintf("a-%d-%d", round, i)))
			create(t, all[len(all)-1])
		}
		waitUntil(t, "too few Pods", func() bool { return len(podsOf(t, all[10*round+2*round])) > 0 })
		suite.operator.Kill()
		must(t, suite.admin.DeleteAllOf(t.Context(), &corev1.Pod{}, client.InNamespace(namespace), client.GracePeriodSeconds(0)))
		must(t, startOperator())
	}
	for _, activity := range all {
		waitUntil(t, activity, func() bool {
			pods := podsOf(t, activity)
			return read(t, activity).Status.Finished() || len(pods) == 1 && len(pods[0].Spec.SchedulingGates) == 0
		})
	}
	counts := runs()
	for _, activity := range all {
		if n := counts[activity.Status.Pod]; n > 1 || n == 0 && activity.Status.Prosta != v1.Failed {
			t.Errorf("%s ran %d times: %+v", activity.Name, n, activity.Status)
		}
	}
}
