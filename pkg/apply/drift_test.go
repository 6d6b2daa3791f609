package apply

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

func own(t *testing.T, child client.Object) {
	t.Helper()
	if err := controllerutil.SetControllerReference(owner, child, clientgoscheme.Scheme); err != nil {
		t.Fatal(err)
	}
}

// TestDriftDuringAPatch verifies that a drift between the read and the patch is not recorded as
// declared. The API server rejects the patch, and the retry reads the current child.
func TestDriftDuringAPatch(t *testing.T) {
	image := func(image string) func(*appsv1.Deployment) {
		return func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = image }
	}
	live := stored(t, deployment())
	image("nginx:9")(live)
	own(t, live)
	meanwhile := true
	applier, _ := newApplier(interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, opts ...client.PatchOption) error {
			if meanwhile {
				meanwhile = false
				drifted := deployment()
				if err := c.Get(ctx, client.ObjectKeyFromObject(object), drifted); err != nil {
					return err
				}
				drifted.Spec.Template.Annotations["note"] = "y"
				if err := c.Update(ctx, drifted); err != nil {
					return err
				}
			}
			return c.Patch(ctx, object, patch, opts...)
		},
	}, live)
	if _, err := applier.Apply(t.Context(), owner, nil, nil, deployment()); !apierrors.IsConflict(err) {
		t.Errorf("error %v, want a conflict", err)
	}
	applier.apply(t, deployment())
	got := deployment()
	if err := applier.Reader.Get(t.Context(), client.ObjectKeyFromObject(live), got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(deployment().Spec.Template, got.Spec.Template); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestServiceOutsideOfTheCache verifies that a Service that lost the operator's label is patched
// although the cache does not have it. The API server rejects a second Service with the same node
// port before it checks the name.
func TestServiceOutsideOfTheCache(t *testing.T) {
	declared := func() *corev1.Service {
		return &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", Labels: map[string]string{"a": "1"}},
			Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort, Ports: []corev1.ServicePort{{Port: 80, NodePort: 30080}}},
		}
	}
	live := stored(t, declared())
	own(t, live)
	live.Labels["a"] = "2"
	applier, counted := newApplier(interceptor.Funcs{
		Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
			return apierrors.NewInvalid(schema.GroupKind{Kind: "Service"}, "web", nil)
		},
	}, live)
	applier.Client = interceptor.NewClient(applier.Client.(client.WithWatch), interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return apierrors.NewNotFound(schema.GroupResource{Resource: "services"}, "web")
		},
	})
	applier.apply(t, declared())
	got := declared()
	if err := applier.Reader.Get(t.Context(), client.ObjectKeyFromObject(live), got); err != nil || got.Labels["a"] != "1" {
		t.Errorf("labels %v, error %v", got.Labels, err)
	}
	if diff := cmp.Diff(writes{"patch Service": 1}, counted); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
	if err := applier.Client.Delete(t.Context(), live); err != nil {
		t.Fatal(err)
	}
	if _, err := applier.Apply(t.Context(), owner, nil, nil, declared()); !apierrors.IsInvalid(err) {
		t.Errorf("error %v, want what the API server said", err)
	}
}
