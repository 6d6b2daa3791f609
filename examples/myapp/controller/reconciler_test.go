package controller

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/example/nginx-operator/examples/myapp/api/v1alpha1"
	"github.com/example/nginx-operator/internal/apply"
	"github.com/example/nginx-operator/internal/metadata"
)

// world is a cluster of objects with a Reconciler, and counts what is written to it.
type world struct {
	client.Client
	*Reconciler
	writes map[string]int
}

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	w := &world{writes: map[string]int{}}
	w.Client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(&v1alpha1.MyApp{}).
		WithInterceptorFuncs(interceptor.Funcs{
			SubResourcePatch: func(ctx context.Context, c client.Client, sub string, object client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
				w.writes[sub]++
				return c.SubResource(sub).Patch(ctx, object, patch, opts...)
			},
		}).Build()
	w.Reconciler = &Reconciler{
		Client: w.Client,
		Applier: &apply.Applier{Client: w.Client, Reader: w.Client, Annotation: metadata.AnnotationLastDeclared, Wrote: func(_ string, verb apply.Verb) {
			w.writes[string(verb)]++
		}},
		Recorder: events.NewFakeRecorder(10),
	}
	return w
}

// pass reconciles the object as it is stored, and returns what was written and the object after it.
func (w *world) pass(t *testing.T) (map[string]int, *v1alpha1.MyApp) {
	t.Helper()
	clear(w.writes)
	app := &v1alpha1.MyApp{}
	if err := w.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "myapp-sample"}, app); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Reconcile(t.Context(), app); err != nil {
		t.Fatal(err)
	}
	if err := w.Get(t.Context(), client.ObjectKeyFromObject(app), app); err != nil {
		t.Fatal(err)
	}
	return w.writes, app
}

func (w *world) deployment(t *testing.T) *appsv1.Deployment {
	t.Helper()
	deployment := &appsv1.Deployment{}
	if err := w.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "myapp-sample"}, deployment); err != nil {
		t.Fatal(err)
	}
	return deployment
}

// The life of the document's MyApp: created, left alone, scaled, drifted.
func TestLifecycle(t *testing.T) {
	w := newWorld(t, sampleApp(t))
	if writes, _ := w.pass(t); !cmp.Equal(writes, map[string]int{"create": 1, "status": 1}) {
		t.Errorf("a new MyApp wrote %v", writes)
	}
	deployment := w.deployment(t)
	if owner := metav1.GetControllerOf(deployment); owner == nil || owner.Kind != "MyApp" || owner.UID != "app-uid" || *deployment.Spec.Replicas != 3 {
		t.Errorf("owner is %v, replicas are %d", owner, *deployment.Spec.Replicas)
	}
	if writes, _ := w.pass(t); len(writes) != 0 {
		t.Errorf("a MyApp at rest wrote %v", writes)
	}

	_, app := w.pass(t)
	app.Spec.Replicas = ptr.To[int32](5)
	if err := w.Update(t.Context(), app); err != nil {
		t.Fatal(err)
	}
	if writes, _ := w.pass(t); writes["patch"] != 1 || *w.deployment(t).Spec.Replicas != 5 {
		t.Errorf("wrote %v, replicas are %d", writes, *w.deployment(t).Spec.Replicas)
	}

	deployment = w.deployment(t)
	deployment.Spec.Replicas = ptr.To[int32](1)
	deployment.Spec.Template.Spec.Containers[0].Image = "other:1"
	if err := w.Update(t.Context(), deployment); err != nil {
		t.Fatal(err)
	}
	w.pass(t)
	if spec := w.deployment(t).Spec; *spec.Replicas != 5 || spec.Template.Spec.Containers[0].Image != "myapp:latest" {
		t.Errorf("drift was left: %d replicas of %s", *spec.Replicas, spec.Template.Spec.Containers[0].Image)
	}
}

// A Deployment of somebody else is left as it is, and the status says so.
func TestNameConflict(t *testing.T) {
	taken := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "myapp-sample", Labels: map[string]string{"of": "others"}}}
	w := newWorld(t, sampleApp(t), taken)
	writes, app := w.pass(t)
	if !cmp.Equal(writes, map[string]int{"status": 1}) || w.deployment(t).Labels["of"] != "others" {
		t.Errorf("wrote %v", writes)
	}
	if ready := meta.FindStatusCondition(app.Status.Conditions, v1alpha1.ConditionReady); ready == nil || ready.Reason != v1alpha1.ReasonNameConflict {
		t.Errorf("Ready is %+v", ready)
	}
}

// The transform keeps what the next pass compares: a Deployment as it was declared differs from one that drifted.
func TestSlimDeployment(t *testing.T) {
	w := newWorld(t, sampleApp(t))
	w.pass(t)
	kept := func(change func(*appsv1.Deployment)) string {
		deployment := w.deployment(t)
		change(deployment)
		out, err := slimDeployment(deployment)
		if err != nil {
			t.Fatal(err)
		}
		return out.(*appsv1.Deployment).Annotations[metadata.AnnotationLastDeclared]
	}
	if got := kept(func(*appsv1.Deployment) {}); got == "" {
		t.Error("a Deployment as declared looks like one that drifted")
	}
	if got := kept(func(d *appsv1.Deployment) { d.Spec.Replicas = ptr.To[int32](1) }); got != "" {
		t.Errorf("drift is not seen: %q", got)
	}
	if out, err := slimDeployment("tombstone"); err != nil || out != "tombstone" {
		t.Errorf("got %v, %v", out, err)
	}
}
