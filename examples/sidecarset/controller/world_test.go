package controller

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/example/nginx-operator/examples/sidecarset/api/v1alpha1"
	"github.com/example/nginx-operator/examples/sidecarset/sidecar"
)

// world is a cluster with a Reconciler, whose watch and kubelet work when the test says so.
type world struct {
	client.Client
	reconciler *Reconciler
	events     *events.FakeRecorder
	refuse     error
}

// newWorld returns a cluster with the sample SidecarSet and so many running Pods that carry its sidecar.
func newWorld(t *testing.T, pods int) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	set := sampleSet(t)
	objects := []client.Object{set}
	for i := range pods {
		pod := &corev1.Pod{}
		pod.Namespace, pod.Name, pod.UID = "default", fmt.Sprint("pod-", i), types.UID(fmt.Sprint("uid-", i))
		pod.Labels = map[string]string{"app": "nginx"}
		pod.Spec.Containers = []corev1.Container{{Name: "app", Image: "nginx:1.15.1"}}
		pod, _ = sidecar.Inject(pod, []v1alpha1.SidecarSet{*set})
		run(pod)
		objects = append(objects, pod)
	}
	w := &world{events: events.NewFakeRecorder(100)}
	w.Client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(&v1alpha1.SidecarSet{}).
		WithInterceptorFuncs(interceptor.Funcs{
			Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, opts ...client.PatchOption) error {
				if w.refuse != nil {
					return w.refuse
				}
				return c.Patch(ctx, object, patch, opts...)
			},
		}).Build()
	w.restart(t)
	return w
}

// run is what the kubelet does with a Pod: each container runs its image, under an ID that stands for it.
func run(pod *corev1.Pod) {
	pod.Status.Phase = corev1.PodRunning
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	pod.Status.ContainerStatuses = nil
	for _, container := range pod.Spec.Containers {
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{Name: container.Name, ContainerID: "of-" + container.Image})
	}
}

// restart lets the operator begin with nothing but what the cluster has.
func (w *world) restart(t *testing.T) {
	t.Helper()
	w.reconciler = &Reconciler{Sets: w, Pods: w, Reader: w, Tally: NewTally(), Recorder: w.events}
	w.watch(t)
}

// pods returns all Pods.
func (w *world) pods(t *testing.T) []corev1.Pod {
	t.Helper()
	list := &corev1.PodList{}
	if err := w.List(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	return list.Items
}

// watch delivers the state of all Pods, as slim as the cache has them.
func (w *world) watch(t *testing.T) {
	t.Helper()
	for _, pod := range w.pods(t) {
		slim, err := slimPod(&pod)
		if err != nil {
			t.Fatal(err)
		}
		w.reconciler.Tally.Observe(slim.(*corev1.Pod))
	}
}

// kubelet lets all Pods run their images.
func (w *world) kubelet(t *testing.T) {
	t.Helper()
	for _, pod := range w.pods(t) {
		run(&pod)
		if err := w.Status().Update(t.Context(), &pod); err != nil {
			t.Fatal(err)
		}
	}
}

// pass reconciles the SidecarSet and returns it as it is after that.
func (w *world) pass(t *testing.T) (*v1alpha1.SidecarSet, error) {
	t.Helper()
	_, err := w.reconciler.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "test-sidecarset"}})
	set := &v1alpha1.SidecarSet{}
	if err := w.Get(t.Context(), client.ObjectKey{Name: "test-sidecarset"}, set); err != nil {
		t.Fatal(err)
	}
	return set, err
}

// change edits the SidecarSet.
func (w *world) change(t *testing.T, edit func(*v1alpha1.SidecarSet)) {
	t.Helper()
	set := &v1alpha1.SidecarSet{}
	if err := w.Get(t.Context(), client.ObjectKey{Name: "test-sidecarset"}, set); err != nil {
		t.Fatal(err)
	}
	edit(set)
	set.Generation++
	if err := w.Update(t.Context(), set); err != nil {
		t.Fatal(err)
	}
}

// with counts the Pods that declare an image of the sidecar.
func (w *world) with(t *testing.T, image string) int {
	t.Helper()
	count := 0
	for _, pod := range w.pods(t) {
		if pod.Spec.Containers[1].Image == image {
			count++
		}
	}
	return count
}

func newImage(set *v1alpha1.SidecarSet) { set.Spec.Containers[0].Image = "busybox:1.36" }

func reasonOf(set *v1alpha1.SidecarSet, conditionType string) string {
	if found := meta.FindStatusCondition(set.Status.Conditions, conditionType); found != nil {
		return found.Reason
	}
	return ""
}
