package integration

import (
	"fmt"
	"slices"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/examples/activity/api/v1"
	"github.com/example/nginx-operator/test/harness/apiserver"
)

// withoutRights takes from the manager the right to write the status of Activities while a function runs. What it finds then
// is what a kill between the creation of a Pod and its record leaves.
func withoutRights(t *testing.T, do func()) {
	t.Helper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: operatorName + "-manager-role"}}
	whole := read(t, role).DeepCopy()
	update(t, role, func(role *rbacv1.ClusterRole) {
		role.Rules = slices.DeleteFunc(role.Rules, func(rule rbacv1.PolicyRule) bool { return slices.Contains(rule.Resources, "activities/status") })
	})
	defer update(t, role, func(role *rbacv1.ClusterRole) { role.Rules = whole.Rules })
	access := authorizationv1.SubjectAccessReviewSpec{User: operatorUser, ResourceAttributes: &authorizationv1.ResourceAttributes{
		Group: v1.GroupVersion.Group, Resource: "activities", Subresource: "status", Verb: "patch",
	}}
	must(t, apiserver.AwaitAccess(t.Context(), suite.admin, access, false))
	do()
}

// The operator is killed after it made the Pod and before it could say so. Whatever becomes of the Pod until it is back, the
// command has run once.
func TestActivityKilledBeforeTheRecord(t *testing.T) {
	for name, test := range map[string]struct {
		meanwhile func(*testing.T, *corev1.Pod)
		want      v1.Prosta
	}{
		"it-goes-on":           {func(t *testing.T, pod *corev1.Pod) { report(t, pod, runningStatus()) }, v1.Running},
		"it-ends":              {func(t *testing.T, pod *corev1.Pod) { report(t, pod, endedStatus(0)) }, v1.Succeeded},
		"it-ends-and-is-gone":  {func(t *testing.T, pod *corev1.Pod) { report(t, pod, endedStatus(0)); remove(t, pod) }, v1.Succeeded},
		"it-is-deleted-before": {func(t *testing.T, pod *corev1.Pod) { remove(t, pod) }, v1.Failed},
	} {
		t.Run(name, func(t *testing.T) {
			namespace := newNamespace(t)
			pods := countPods(t, namespace)
			activity := newActivity(namespace, name)
			var pod *corev1.Pod
			withoutRights(t, func() {
				create(t, activity)
				pod = waitForPod(t, activity, true)
				suite.operator.Kill()
				test.meanwhile(t, pod)
			})
			restart(t)
			waitForProsta(t, activity, test.want)
			barrier(t, namespace)
			if made := pods(); made[pod.Name] != 1 || activity.Status.Pod != pod.Name {
				t.Errorf("Pods made: %v, status %+v", made, activity.Status)
			}
		})
	}
}

// The operator is killed again and again while it has much to do.
func TestActivityKilledAtAnyTime(t *testing.T) {
	namespace := newNamespace(t)
	pods := countPods(t, namespace)
	var all []*v1.Activity
	for round := range 5 {
		for i := range 10 {
			activity := newActivity(namespace, fmt.Sprintf("a-%d-%d", round, i))
			create(t, activity)
			all = append(all, activity)
		}
		time.Sleep(time.Duration(round) * 30 * time.Millisecond)
		suite.operator.Kill()
		for _, activity := range all {
			for _, pod := range podsOf(t, activity) {
				remove(t, &pod)
			}
		}
		restart(t)
	}
	for _, activity := range all {
		waitFor(t, func() error {
			if activity = read(t, activity); activity.Status.Pod == "" {
				return fmt.Errorf("%s has not run", activity.Name)
			}
			return nil
		})
	}
	made := pods()
	for _, activity := range all {
		if n := made[activity.Status.Pod]; n != 1 {
			t.Errorf("%s ran %d times", activity.Name, n)
		}
	}
	if len(made) != len(all) {
		t.Errorf("%d Pods for %d Activities", len(made), len(all))
	}
}

// A Pod whose Activity is deleted before its record is let go when the garbage collector, whose part the test plays,
// deletes it.
func TestActivityOrphan(t *testing.T) {
	activity := newActivity(newNamespace(t), "a")
	var pod *corev1.Pod
	withoutRights(t, func() {
		create(t, activity)
		pod = waitForPod(t, activity, true)
		suite.operator.Kill()
		remove(t, activity)
		remove(t, pod)
		read(t, pod) // it is held
	})
	restart(t)
	waitFor(t, func() error {
		if err := suite.admin.Get(t.Context(), client.ObjectKeyFromObject(pod), pod); !apierrors.IsNotFound(err) {
			return fmt.Errorf("the Pod is held by %q: %w", pod.Finalizers, err)
		}
		return nil
	})
}
