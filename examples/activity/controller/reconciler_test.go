package controller

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/example/nginx-operator/examples/activity/api/v1"
)

// errKilled ends a pass where a kill would.
var errKilled = errors.New("killed")

// world is an API server without cache, that counts the Pods that are made and fails requests on demand.
type world struct {
	t          *testing.T
	client     client.Client
	reconciler *Reconciler
	made       int
	// failCreate, failStatus and failPatch are the errors of requests, nil for none.
	failCreate, failStatus, failPatch error
}

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	w := &world{t: t}
	w.client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
		WithStatusSubresource(&v1.Activity{}, &corev1.Pod{}).WithIndex(&corev1.Pod{}, heldIndex, heldFor).
		WithInterceptorFuncs(interceptor.Funcs{
			Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
				if w.failCreate != nil {
					return w.failCreate
				}
				w.made++
				return c.Create(ctx, object, options...)
			},
			Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
				if w.failPatch != nil {
					return w.failPatch
				}
				return c.Patch(ctx, object, patch, options...)
			},
			SubResourcePatch: func(ctx context.Context, c client.Client, sub string, object client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
				if w.failStatus != nil {
					return w.failStatus
				}
				return c.SubResource(sub).Patch(ctx, object, patch, options...)
			},
		}).Build()
	w.reconciler = &Reconciler{Client: w.client, Pods: w.client, Reader: w.client, Recorder: events.NewFakeRecorder(100), Image: image}
	return w
}

// pass makes one pass over the sample.
func (w *world) pass() error {
	_, err := w.reconciler.Reconcile(w.t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(newActivity())})
	return err
}

// passes makes some passes that have to succeed, and returns the status after them.
func (w *world) passes(n int) v1.ActivityStatus {
	w.t.Helper()
	for range n {
		w.must(w.pass())
	}
	activity := newActivity()
	w.must(w.client.Get(w.t.Context(), client.ObjectKeyFromObject(activity), activity))
	return activity.Status
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// pod returns the sample's Pod, nil where there is none.
func (w *world) pod() *corev1.Pod {
	w.t.Helper()
	pod := &corev1.Pod{}
	err := w.client.Get(w.t.Context(), client.ObjectKey{Namespace: "default", Name: podName(newActivity())}, pod)
	if apierrors.IsNotFound(err) {
		return nil
	}
	w.must(err)
	return pod
}

// ends writes what a kubelet writes at the end of the process.
func (w *world) ends(phase corev1.PodPhase, code int32) {
	w.t.Helper()
	pod := w.pod()
	pod.Status = podWith(phase, terminated(code, "")).Status
	w.must(w.client.Status().Update(w.t.Context(), pod))
}

// once requires that the command was run once and that this is known.
func (w *world) once(status v1.ActivityStatus, prosta v1.Prosta) {
	w.t.Helper()
	if w.made != 1 || status.Prosta != prosta || status.Pod != podName(newActivity()) {
		w.t.Errorf("%d Pods were made, status %+v", w.made, status)
	}
}

// A run from its beginning to its end, and after it.
func TestReconcile(t *testing.T) {
	w := newWorld(t, newActivity())
	w.once(w.passes(2), v1.Pending)
	pod := w.pod()
	if len(pod.Finalizers) != 0 {
		t.Errorf("the Pod is held by %q", pod.Finalizers)
	}
	if !metav1.IsControlledBy(pod, newActivity()) {
		t.Errorf("the Pod's owners are %v", pod.OwnerReferences)
	}
	w.ends(corev1.PodFailed, 3)
	status := w.passes(2)
	w.once(status, v1.Failed)
	if *status.ExitCode != 3 || !status.StartTime.Equal(&began) || !status.FinishTime.Equal(&ended) {
		t.Errorf("status %+v", status)
	}
	w.must(w.client.Delete(t.Context(), w.pod()))
	if diff := cmp.Diff(status, w.passes(2)); diff != "" {
		t.Errorf("after the deletion of the Pod (-was +is):\n%s", diff)
	}
	w.once(status, v1.Failed)
}

// Wherever the operator is killed, and whatever becomes of the Pod before it is back, the command runs once.
func TestKilled(t *testing.T) {
	for name, kill := range map[string]func(*world, error){
		"before the status names the Pod": func(w *world, err error) { w.failStatus = err },
		"before the Pod is let go":        func(w *world, err error) { w.failPatch = err },
	} {
		for meanwhile, test := range map[string]struct {
			do   func(*world)
			want v1.Prosta
		}{
			"nothing happens":             {func(*world) {}, v1.Pending},
			"it ends":                     {func(w *world) { w.ends(corev1.PodSucceeded, 0) }, v1.Succeeded},
			"it ends and is deleted":      {func(w *world) { w.ends(corev1.PodSucceeded, 0); w.must(w.client.Delete(t.Context(), w.pod())) }, v1.Succeeded},
			"it is deleted while it runs": {func(w *world) { w.must(w.client.Delete(t.Context(), w.pod())) }, v1.Failed},
		} {
			t.Run(name+", "+meanwhile, func(t *testing.T) {
				w := newWorld(t, newActivity())
				kill(w, errKilled)
				if err := w.pass(); !errors.Is(err, errKilled) {
					t.Fatalf("the pass went on: %v", err)
				}
				if pod := w.pod(); pod == nil || len(pod.Finalizers) != 1 {
					t.Fatalf("the Pod is not held: %+v", pod)
				}
				test.do(w)
				kill(w, nil)
				w.once(w.passes(3), test.want)
				if pod := w.pod(); pod != nil && len(pod.Finalizers) != 0 {
					t.Errorf("the Pod is held by %q", pod.Finalizers)
				}
			})
		}
	}
}

// What cannot be run is said in the status, once and for all, and is not tried again.
func TestRefused(t *testing.T) {
	onNode := newActivity()
	onNode.Spec.Host = "node-9"
	foreign := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: podName(newActivity())}}
	invalid := apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "p", nil)
	for name, test := range map[string]struct {
		objects []client.Object
		fail    error
		want    string
	}{
		"unknown host":              {objects: []client.Object{onNode}, want: `host "node-9" is no node of this cluster; create the Activity again with a host of kubectl get nodes, or without one`},
		"the name of a foreign Pod": {objects: []client.Object{newActivity(), foreign}, want: "exists already and is not the Activity's"},
		"an invalid Pod":            {objects: []client.Object{newActivity()}, fail: invalid, want: `Pod "p" is invalid`},
	} {
		w := newWorld(t, test.objects...)
		w.failCreate = test.fail
		status := w.passes(1)
		if status.Prosta != v1.Failed || !strings.Contains(status.Message, test.want) || status.Pod != "" || w.made != 0 {
			t.Errorf("%s: %d Pods made, status %+v", name, w.made, status)
		}
		w.failCreate = nil
		if diff := cmp.Diff(status, w.passes(1)); diff != "" || w.made != 0 {
			t.Errorf("%s: the next pass made %d Pods (-was +is):\n%s", name, w.made, diff)
		}
	}
	w := newWorld(t, onNode, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-9"}})
	w.once(w.passes(1), v1.Pending)
}

// What may pass by itself is said in the status and tried again.
func TestWaiting(t *testing.T) {
	w := newWorld(t, newActivity())
	w.failCreate = apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "p", errors.New("exceeded quota: few"))
	if err := w.pass(); !apierrors.IsForbidden(err) {
		t.Fatalf("want another attempt, got %v", err)
	}
	if status := w.passes(0); status.Prosta != v1.Pending || !strings.Contains(status.Message, "exceeded quota: few") || status.Pod != "" {
		t.Errorf("status %+v", status)
	}
	w.failCreate = nil
	status := w.passes(1)
	w.once(status, v1.Pending)
	if status.Message != "" {
		t.Errorf("message %q", status.Message)
	}
}

// A Pod whose Activity is gone, or was replaced by another one of its name, is let go once it is deleted, and not before.
func TestOrphans(t *testing.T) {
	other := newActivity()
	other.UID = "0002"
	for name, replace := range map[string]*v1.Activity{"gone": nil, "replaced": other} {
		w := newWorld(t, newActivity())
		w.failStatus = errKilled
		if err := w.pass(); !errors.Is(err, errKilled) {
			t.Fatal(err)
		}
		w.failStatus = nil
		w.must(w.client.Delete(t.Context(), newActivity()))
		if replace != nil {
			w.must(w.client.Create(t.Context(), replace.DeepCopy()))
		}
		w.must(w.pass())
		if pod := w.pod(); pod == nil || len(pod.Finalizers) != 1 {
			t.Errorf("%s: the Pod was let go before the garbage collector deleted it", name)
		}
		w.must(w.client.Delete(t.Context(), w.pod()))
		w.must(w.pass())
		if pod := w.pod(); pod != nil {
			t.Errorf("%s: the Pod is held by %q", name, pod.Finalizers)
		}
	}
}

// An Activity that is being deleted runs nothing any more.
func TestDeleted(t *testing.T) {
	activity := newActivity()
	activity.Finalizers = []string{metav1.FinalizerDeleteDependents}
	w := newWorld(t, activity)
	w.must(w.client.Delete(t.Context(), newActivity()))
	w.must(w.pass())
	if w.made != 0 {
		t.Error("a Pod was made")
	}
}
