package integration

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/examples/foo/api/v1"
)

func newFoo(namespace, name, friend string) *v1.Foo {
	return &v1.Foo{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: v1.FooSpec{Name: friend}}
}

// waitForHappy waits until the status of a Foo says so of its current generation.
func waitForHappy(t *testing.T, foo *v1.Foo, want bool) {
	t.Helper()
	waitFor(t, func() error {
		if err := suite.admin.Get(t.Context(), client.ObjectKeyFromObject(foo), foo); err != nil {
			return err
		}
		if foo.Status != (v1.FooStatus{Happy: want, ObservedGeneration: foo.Generation}) {
			return fmt.Errorf("%s: want happy %t of generation %d, got %+v", foo.Name, want, foo.Generation, foo.Status)
		}
		return nil
	})
}

// waitForEvents waits until these Events, and no others, tell of an object.
func waitForEvents(t *testing.T, object client.Object, want ...string) {
	t.Helper()
	waitFor(t, func() error {
		if diff := cmp.Diff(want, told(t, object)); diff != "" {
			return fmt.Errorf("%s: Events (-want +got):\n%s", object.GetName(), diff)
		}
		return nil
	})
}

// The document, step by step.
func TestFooWalkThrough(t *testing.T) {
	namespace, elsewhere := newNamespace(t), newNamespace(t)
	foo01, foo02 := newFoo(namespace, "foo-01", "jack"), newFoo(namespace, "foo-02", "joe")
	create(t, foo01, foo02)
	waitForHappy(t, foo01, false)
	waitForHappy(t, foo02, false)
	path := "/apis/tutorial.my.domain/v1/namespaces/" + namespace + "/foos/foo-01"
	if shown := columns(t, path); shown["Happy"] != false || shown["Friend"] != "jack" {
		t.Errorf("kubectl get shows %v", shown)
	}

	jack := newPod(elsewhere, "jack")
	create(t, jack)
	waitForHappy(t, foo01, true)
	if shown := columns(t, path); shown["Happy"] != true {
		t.Errorf("kubectl get shows %v", shown)
	}
	waitForHappy(t, foo02, false)

	update(t, foo02, func(foo *v1.Foo) { foo.Spec.Name = "jack" })
	waitForHappy(t, foo02, true)

	remove(t, jack)
	waitForHappy(t, foo01, false)
	waitForHappy(t, foo02, false)
	for _, foo := range []*v1.Foo{foo01, foo02} {
		waitForEvents(t, foo, "Normal FriendFound found "+elsewhere+"/jack", `Normal FriendLost no Pod in the cluster is named "jack"`)
	}
}

// A Pod's arrival costs one pass for each Foo that looks for it, its status nothing at all, and its end one pass again.
func TestFooPasses(t *testing.T) {
	namespace := newNamespace(t)
	const friends, others = 3, 20
	var foos []*v1.Foo
	for i := range friends + others {
		friend := "quiet"
		if i >= friends {
			friend = fmt.Sprintf("nobody-%d", i)
		}
		foos = append(foos, newFoo(namespace, fmt.Sprintf("foo-%d", i), friend))
		create(t, foos[i])
	}
	for _, foo := range foos {
		waitForHappy(t, foo, false)
	}
	begin, written := settled(t, "foo"), statusWrites(t, namespace)
	if written != friends+others {
		t.Errorf("%d writes of status for %d Foos", written, friends+others)
	}
	pod := newPod(namespace, "quiet")
	create(t, pod)
	for _, foo := range foos[:friends] {
		waitForHappy(t, foo, true)
	}
	for i := range 50 {
		report(t, pod, corev1.PodStatus{Phase: corev1.PodRunning, Message: fmt.Sprint(i)})
	}
	update(t, pod, func(pod *corev1.Pod) { pod.Labels = map[string]string{"a": "b"} })
	remove(t, pod)
	for _, foo := range foos[:friends] {
		waitForHappy(t, foo, false)
	}
	if n := settled(t, "foo") - begin; n != 2*friends {
		t.Errorf("%d passes for the arrival and the end of one friend of %d Foos", n, friends)
	}
	if n := statusWrites(t, namespace) - written; n != 2*friends {
		t.Errorf("%d writes of status for 2 changes of %d Foos", n, friends)
	}
}

// What happens while the operator is down is seen when it is back, and nothing is written where nothing happened.
func TestFooMissedEvents(t *testing.T) {
	namespace := newNamespace(t)
	gained, lost, same := newFoo(namespace, "gained", "late"), newFoo(namespace, "lost", "early"), newFoo(namespace, "same", "always")
	early := newPod(namespace, "early")
	create(t, early, newPod(namespace, "always"), gained, lost, same)
	waitForHappy(t, gained, false)
	waitForHappy(t, lost, true)
	waitForHappy(t, same, true)
	unchanged := same.ResourceVersion

	suite.operator.Kill()
	create(t, newPod(namespace, "late"))
	remove(t, early)
	restart(t)
	waitForHappy(t, gained, true)
	waitForHappy(t, lost, false)
	if read(t, same).ResourceVersion != unchanged {
		t.Error("a Foo of which nothing changed was written")
	}
}

// One of two friends of one name may go.
func TestFooTwoFriends(t *testing.T) {
	namespace, other := newNamespace(t), newNamespace(t)
	foo, first, second := newFoo(namespace, "foo", "twin"), newPod(namespace, "twin"), newPod(other, "twin")
	create(t, first, second, foo)
	waitForHappy(t, foo, true)
	before := settled(t, "foo")
	remove(t, first)
	waitFor(t, func() error {
		if passes(t, "foo") == before {
			return errors.New("the end of a friend was not looked at")
		}
		return nil
	})
	waitForHappy(t, foo, true)
	remove(t, second)
	waitForHappy(t, foo, false)
}
