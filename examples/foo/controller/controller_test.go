package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/example/nginx-operator/examples/foo/api/v1"
)

func newFoo(name, friend string) *v1.Foo {
	return &v1.Foo{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Generation: 1},
		Spec:       v1.FooSpec{Name: friend},
	}
}

func newJack(namespace string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "jack"}}
}

// world is an API server without cache, that counts the writes and refuses them while refuse is set.
type world struct {
	t      *testing.T
	client client.Client
	events *events.FakeRecorder
	writes int
	refuse error
}

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, events: events.NewFakeRecorder(10)}
	w.client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(&v1.Foo{}).
		WithIndex(&v1.Foo{}, friendIndex, friendOf).WithIndex(&corev1.Pod{}, podIndex, nameOf).
		WithInterceptorFuncs(interceptor.Funcs{
			SubResourcePatch: func(ctx context.Context, c client.Client, sub string, object client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
				if w.refuse != nil {
					return w.refuse
				}
				w.writes++
				return c.SubResource(sub).Patch(ctx, object, patch, options...)
			},
		}).Build()
	return w
}

// pass makes one pass over a Foo and returns it as it is stored then, with the Events that were sent.
func (w *world) pass(name string) (*v1.Foo, []string, error) {
	w.t.Helper()
	foo, key := &v1.Foo{}, client.ObjectKey{Namespace: "default", Name: name}
	if err := w.client.Get(w.t.Context(), key, foo); err != nil {
		w.t.Fatal(err)
	}
	_, err := (&Reconciler{Client: w.client, Pods: w.client, Recorder: w.events}).Reconcile(w.t.Context(), foo)
	if err := w.client.Get(w.t.Context(), key, foo); err != nil {
		w.t.Fatal(err)
	}
	var sent []string
	for len(w.events.Events) > 0 {
		sent = append(sent, <-w.events.Events)
	}
	return foo, sent, err
}

// The document's walk through, as a reconciler sees it: each step costs one write and one Event, and nothing costs nothing.
func TestReconcile(t *testing.T) {
	w := newWorld(t, newFoo("foo-01", "jack"), newFoo("foo-02", "joe"))
	step := func(title, name string, happy bool, writes int, want ...string) {
		t.Helper()
		before := w.writes
		foo, sent, err := w.pass(name)
		if err != nil {
			t.Fatalf("%s: %v", title, err)
		}
		if foo.Status != (v1.FooStatus{Happy: happy, ObservedGeneration: foo.Generation}) || w.writes-before != writes {
			t.Errorf("%s: status %+v after %d writes", title, foo.Status, w.writes-before)
		}
		if diff := cmp.Diff(want, sent); diff != "" {
			t.Errorf("%s: Events (-want +got):\n%s", title, diff)
		}
	}
	step("at first", "foo-01", false, 1)
	step("at first", "foo-02", false, 1)
	step("nothing new", "foo-01", false, 0)

	for _, namespace := range []string{"shop", "default"} {
		if err := w.client.Create(t.Context(), newJack(namespace)); err != nil {
			t.Fatal(err)
		}
	}
	step("jack is there", "foo-01", true, 1, "Normal FriendFound found default/jack, shop/jack")
	step("jack is no friend of foo-02", "foo-02", false, 0)

	renamed := newFoo("foo-02", "jack")
	if err := w.client.Get(t.Context(), client.ObjectKeyFromObject(renamed), renamed); err != nil {
		t.Fatal(err)
	}
	renamed.Spec.Name, renamed.Generation = "jack", 2
	if err := w.client.Update(t.Context(), renamed); err != nil {
		t.Fatal(err)
	}
	step("foo-02 looks for jack", "foo-02", true, 1, "Normal FriendFound found default/jack, shop/jack")

	if err := w.client.Delete(t.Context(), newJack("default")); err != nil {
		t.Fatal(err)
	}
	step("another jack is left", "foo-01", true, 0)
	if err := w.client.Delete(t.Context(), newJack("shop")); err != nil {
		t.Fatal(err)
	}
	step("jack is gone", "foo-01", false, 1, `Normal FriendLost no Pod in the cluster is named "jack"`)
	step("jack is gone", "foo-02", false, 1, `Normal FriendLost no Pod in the cluster is named "jack"`)
}

// A write that fails is tried again and told of by nobody; one that finds the Foo gone is no failure.
func TestReconcileFails(t *testing.T) {
	w := newWorld(t, newFoo("foo-01", "jack"), newJack("default"))
	w.refuse = errors.New("no room left")
	if _, sent, err := w.pass("foo-01"); !errors.Is(err, w.refuse) || len(sent) != 0 {
		t.Errorf("error %v, Events %q", err, sent)
	}
	w.refuse = nil
	if foo, sent, err := w.pass("foo-01"); err != nil || !foo.Status.Happy || len(sent) != 1 {
		t.Errorf("the next pass: %v, %+v, Events %q", err, foo.Status, sent)
	}
	gone := newFoo("foo-03", "jack")
	_, err := (&Reconciler{Client: w.client, Pods: w.client, Recorder: w.events}).Reconcile(t.Context(), gone)
	if err != nil || len(w.events.Events) != 0 {
		t.Errorf("a Foo that is gone: %v, %d Events", err, len(w.events.Events))
	}
}

// A Pod concerns the Foos that look for its name, wherever they are, and no others.
func TestLookingFor(t *testing.T) {
	elsewhere := newFoo("foo-03", "jack")
	elsewhere.Namespace = "shop"
	w := newWorld(t, newFoo("foo-01", "jack"), newFoo("foo-02", "joe"), elsewhere, newFoo("foo-04", "jack-2"))
	for name, want := range map[string][]string{"jack": {"default/foo-01", "shop/foo-03"}, "joe": {"default/foo-02"}, "jac": nil} {
		pod := podMetadata()
		pod.Namespace, pod.Name = "anywhere", name
		var got []string
		for _, request := range lookingFor(w.client)(t.Context(), pod) {
			got = append(got, request.String())
		}
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// The noise of a Pod's life is worth no pass.
func TestComesOrGoes(t *testing.T) {
	pod := podMetadata()
	if !comesOrGoes().Create(event.TypedCreateEvent[*metav1.PartialObjectMetadata]{Object: pod}) {
		t.Error("an arrival does not pass")
	}
	if !comesOrGoes().Delete(event.TypedDeleteEvent[*metav1.PartialObjectMetadata]{Object: pod}) {
		t.Error("an end does not pass")
	}
	if comesOrGoes().Update(event.TypedUpdateEvent[*metav1.PartialObjectMetadata]{ObjectOld: pod, ObjectNew: pod}) {
		t.Error("a change passes")
	}
}

// Of a Pod the cache keeps what identifies it; what is no Pod passes through.
func TestSlimPod(t *testing.T) {
	pod := podMetadata()
	pod.ObjectMeta = metav1.ObjectMeta{
		Namespace: "default", Name: "jack", UID: "1", ResourceVersion: "2", Labels: map[string]string{"a": "b"},
		Annotations: map[string]string{"a": "b"}, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubelet"}},
	}
	want := podMetadata()
	want.ObjectMeta = metav1.ObjectMeta{Namespace: "default", Name: "jack", UID: "1", ResourceVersion: "2"}
	got, err := slimPod(pod)
	if diff := cmp.Diff(any(want), got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if got, err := slimPod("a tombstone"); got != "a tombstone" || err != nil {
		t.Errorf("%v, %v", got, err)
	}
}

// An Event of many friends names a few of them.
func TestTold(t *testing.T) {
	var friends []string
	for i := range 5 {
		friends = append(friends, fmt.Sprintf("ns-%d/jack", i))
	}
	if _, message := told(v1.FooStatus{}, v1.FooStatus{Happy: true}, "jack", friends); strings.Count(message, "/") != 3 {
		t.Errorf("message %q", message)
	}
}
