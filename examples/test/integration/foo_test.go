package integration

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/example/nginx-operator/examples/foo/api/v1"
	"github.com/example/nginx-operator/test/harness/apiserver"
)

func newFoo(namespace, name, friend string) *v1.Foo {
	return &v1.Foo{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: v1.FooSpec{Name: friend}}
}

// waitForHappy waits until the status of each Foo has this value for its current generation.
func waitForHappy(t *testing.T, want bool, foos ...*v1.Foo) {
	t.Helper()
	for _, foo := range foos {
		waitUntil(t, foo, func() bool {
			return read(t, foo).Status == v1.FooStatus{Happy: want, ObservedGeneration: foo.Generation}
		})
	}
}

// TestFooReconciles checks that the creation or deletion of a Pod causes one reconcile of each Foo
// that references it, and that a change of the Pod's status causes none.
func TestFooReconciles(t *testing.T) {
	namespace := newNamespace(t)
	const friends = 3
	var foos []*v1.Foo
	for i := range 20 {
		foos = append(foos, newFoo(namespace, fmt.Sprint("foo-", i), "quiet"))
		if i >= friends {
			foos[i].Spec.Name = fmt.Sprint("nobody-", i)
		}
		create(t, foos[i])
	}
	waitForHappy(t, false, foos...)
	before := settled(t, "foo")
	pod := newPod(namespace, "quiet")
	create(t, pod)
	waitForHappy(t, true, foos[:friends]...)
	for i := range 20 {
		report(t, pod, corev1.PodStatus{Phase: corev1.PodRunning, Message: fmt.Sprint(i)})
	}
	update(t, pod, func(pod *corev1.Pod) { pod.Labels = map[string]string{"a": "b"} })
	remove(t, pod)
	waitForHappy(t, false, foos[:friends]...)
	if n := settled(t, "foo") - before; n != 2*friends {
		t.Errorf("%d reconciles for the arrival and the end of a friend of %d Foos", n, friends)
	}
	writes := audit(t, func(e apiserver.Request) bool {
		return e.ObjectRef.Namespace == namespace && e.ObjectRef.Subresource == "status"
	})
	if len(writes) != len(foos)+2*friends {
		t.Errorf("%d writes of status", len(writes))
	}
}

// TestFooMissedEvents checks that the operator handles changes from the time when it was down, and
// writes only Foos that changed. A friend may be in any namespace, and one of two may be deleted.
func TestFooMissedEvents(t *testing.T) {
	namespace, other := newNamespace(t), newNamespace(t)
	gained, lost, same := newFoo(namespace, "gained", "late"), newFoo(namespace, "lost", "early"), newFoo(namespace, "same", "nobody")
	early, twin := newPod(other, "early"), newPod(other, "twin")
	create(t, early, twin, newPod(namespace, "twin"), gained, lost, same)
	waitForHappy(t, false, gained, same)
	update(t, same, func(foo *v1.Foo) { foo.Spec.Name = "twin" })
	waitForHappy(t, true, lost, same)
	unchanged := same.ResourceVersion
	suite.operator.Kill()
	create(t, newPod(namespace, "late"))
	remove(t, early)
	must(t, startOperator())
	waitForHappy(t, true, gained)
	waitForHappy(t, false, lost)
	waitForEvents(t, lost, "Normal FriendFound found "+other+"/early", `Normal FriendLost no Pod in the cluster is named "early"`)
	before := settled(t, "foo")
	remove(t, twin)
	waitUntil(t, "not reconciled", func() bool { return reconciles(t, "foo") > before })
	if read(t, same).ResourceVersion != unchanged {
		t.Error("a Foo was written that did not change")
	}
}
