package integration

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/example/nginx-operator/examples/foo/api/v1"
)

func newFoo(namespace, name, friend string) *v1.Foo {
	return &v1.Foo{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: v1.FooSpec{Name: friend}}
}

// waitForHappy waits until the status of each Foo says so of its current generation.
func waitForHappy(t *testing.T, want bool, foos ...*v1.Foo) {
	t.Helper()
	for _, foo := range foos {
		waitFor(t, func() error {
			if read(t, foo).Status != (v1.FooStatus{Happy: want, ObservedGeneration: foo.Generation}) {
				return fmt.Errorf("%s: want happy %t of generation %d, got %+v", foo.Name, want, foo.Generation, foo.Status)
			}
			return nil
		})
	}
}

// The document, step by step.
func TestFooWalkThrough(t *testing.T) {
	namespace, elsewhere := newNamespace(t), newNamespace(t)
	foo01, foo02 := newFoo(namespace, "foo-01", "jack"), newFoo(namespace, "foo-02", "joe")
	create(t, foo01, foo02)
	waitForHappy(t, false, foo01, foo02)
	jack := newPod(elsewhere, "jack")
	create(t, jack)
	waitForHappy(t, true, foo01)
	path := "/apis/tutorial.my.domain/v1/namespaces/" + namespace + "/foos/foo-01"
	if got := columns(t, path); got != "Name=foo-01 Friend=jack Happy=true" {
		t.Errorf("kubectl get shows %s", got)
	}
	waitForHappy(t, false, foo02)
	update(t, foo02, func(foo *v1.Foo) { foo.Spec.Name = "jack" })
	waitForHappy(t, true, foo02)
	remove(t, jack)
	waitForHappy(t, false, foo01, foo02)
	for _, foo := range []*v1.Foo{foo01, foo02} {
		waitForEvents(t, foo, "Normal FriendFound found "+elsewhere+"/jack", `Normal FriendLost no Pod in the cluster is named "jack"`)
	}
}

// A Pod that comes or goes costs one reconcile of each Foo that names it, and its status none.
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
	writes := audit(t, func(e auditEntry) bool {
		return e.ObjectRef.Namespace == namespace && e.ObjectRef.Subresource == "status"
	})
	if len(writes) != len(foos)+2*friends {
		t.Errorf("%d writes of status", len(writes))
	}
}

// What happens while the operator is down is seen when it is back, and only what changed is written. One of two friends may go.
func TestFooMissedEvents(t *testing.T) {
	namespace, other := newNamespace(t), newNamespace(t)
	gained, lost, same := newFoo(namespace, "gained", "late"), newFoo(namespace, "lost", "early"), newFoo(namespace, "same", "twin")
	early, twin := newPod(namespace, "early"), newPod(other, "twin")
	create(t, early, twin, newPod(namespace, "twin"), gained, lost, same)
	waitForHappy(t, false, gained)
	waitForHappy(t, true, lost, same)
	unchanged := same.ResourceVersion
	suite.operator.Kill()
	create(t, newPod(namespace, "late"))
	remove(t, early)
	must(t, startOperator())
	waitForHappy(t, true, gained)
	waitForHappy(t, false, lost)
	before := settled(t, "foo")
	remove(t, twin)
	waitFor(t, func() error {
		if reconciles(t, "foo") == before {
			return fmt.Errorf("the end of a friend was not looked at")
		}
		return nil
	})
	if read(t, same).ResourceVersion != unchanged {
		t.Error("a Foo was written that did not change")
	}
}
