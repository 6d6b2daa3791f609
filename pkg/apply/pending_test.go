package apply

import (
	"context"
	"errors"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// mirrored is the image that the admission policy of TestPendingUnderAdmission sets.
const mirrored = "mirror.example.com/nginx:1"

// TestPendingUnderAdmission verifies that a change that an admission policy would undo is not
// pending, also for a process that has not written the child. All other changes are, and so is a
// change that the API server refuses. No try changes the child.
func TestPendingUnderAdmission(t *testing.T) {
	resource := schema.GroupResource{Group: "apps", Resource: "deployments"}
	unanswered := apierrors.NewInternalError(errors.New("failed calling webhook"))
	for name, test := range map[string]struct {
		// declare is the change of the declaration, and answer that of the API server to a dry run
		// of the patch. The policy has changed the image.
		declare func(*appsv1.Deployment)
		answer  func(patched *appsv1.Deployment) error
		pending bool
		// again is the number of tries in the next reconcile.
		again int
	}{
		"only the policy's change": {func(*appsv1.Deployment) {}, func(*appsv1.Deployment) error { return nil }, false, 0},
		"a label is added": {
			func(d *appsv1.Deployment) { d.Labels["b"] = "1" },
			func(d *appsv1.Deployment) error { d.Labels["b"] = "1"; return nil }, true, 0,
		},
		"an annotation is removed": {
			func(d *appsv1.Deployment) { d.Spec.Template.Annotations = nil },
			func(d *appsv1.Deployment) error { d.Spec.Template.Annotations = nil; return nil }, true, 0,
		},
		"the policy is gone": {
			func(*appsv1.Deployment) {},
			func(d *appsv1.Deployment) error { d.Spec.Template.Spec.Containers[0].Image = "nginx:1"; return nil }, true, 0,
		},
		"refused": {
			func(*appsv1.Deployment) {},
			func(*appsv1.Deployment) error { return apierrors.NewForbidden(resource, "web", errors.New("policy")) }, true, 0,
		},
		"a webhook without dry runs": {
			func(*appsv1.Deployment) {},
			func(*appsv1.Deployment) error { return apierrors.NewBadRequest("the webhook does not support dry run") }, true, 0,
		},
		"not answered": {func(*appsv1.Deployment) {}, func(*appsv1.Deployment) error { return unanswered }, true, 1},
	} {
		t.Run(name, func(t *testing.T) {
			tries := 0
			applier, counted := newApplier(interceptor.Funcs{
				Create: func(ctx context.Context, c client.WithWatch, object client.Object, opts ...client.CreateOption) error {
					object.(*appsv1.Deployment).Spec.Template.Spec.Containers[0].Image = mirrored
					return c.Create(ctx, object, opts...)
				},
				Patch: func(ctx context.Context, c client.WithWatch, object client.Object, _ client.Patch, opts ...client.PatchOption) error {
					if options := (&client.PatchOptions{}).ApplyOptions(opts); len(options.DryRun) == 0 {
						t.Error("a pending change is written")
					}
					if object.(*appsv1.Deployment).Spec.Template.Annotations != nil {
						t.Error("the response is decoded into the stored object")
					}
					tries++
					if err := c.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
						return err
					}
					return test.answer(object.(*appsv1.Deployment))
				},
			})
			applier.apply(t, deployment())
			applier.Memory = Memory{} // a restart
			clear(counted)

			for _, want := range []int{1, test.again} {
				tries = 0
				pending, err := applier.Pending(t.Context(), owner, nil, nil, []client.Object{deployment(test.declare)}, false)
				if err != nil || (len(pending) > 0) != test.pending || tries != want || len(counted) > 0 {
					t.Errorf("pending %v, %v, after %d tries, want %d; writes %v", pending, err, tries, want, counted)
				}
			}
		})
	}
}

// TestDrifted verifies that a declaration of another release is no drift, and a change by another
// client is. Apply writes the new declaration afterwards.
func TestDrifted(t *testing.T) {
	applier, counted := newApplier(interceptor.Funcs{})
	applier.apply(t, deployment())
	applier.Memory = Memory{} // another release starts
	next := func(d *appsv1.Deployment) { d.Spec.ProgressDeadlineSeconds = ptr.To[int32](600) }
	require := func(want int) {
		t.Helper()
		for range 2 {
			drifted, err := applier.Pending(t.Context(), owner, nil, nil, []client.Object{deployment(next)}, true)
			if err != nil || len(drifted) != want {
				t.Errorf("drifted %v, %v", drifted, err)
			}
		}
	}
	require(0)
	live := deployment()
	applier.read(t, live)
	live.Spec.Replicas = ptr.To[int32](7)
	applier.update(t, live)
	require(1)
	scaled := deployment(next, func(d *appsv1.Deployment) { d.Spec.Replicas = ptr.To[int32](7) })
	if drifted, err := applier.Pending(t.Context(), owner, nil, nil, []client.Object{scaled}, true); err != nil || len(drifted) > 0 {
		t.Errorf("declared with the live number: drifted %v, %v", drifted, err)
	}
	clear(counted)
	if _, err := applier.Apply(t.Context(), owner, nil, nil, deployment(next)); err != nil || counted["patch Deployment"] != 1 {
		t.Errorf("%v, writes %v", err, counted)
	}
	require(0)
	if err := applier.Client.Get(t.Context(), client.ObjectKeyFromObject(live), live); err != nil ||
		ptr.Deref(live.Spec.ProgressDeadlineSeconds, 0) != 600 || *live.Spec.Replicas != 2 {
		t.Errorf("%v, %+v", err, live.Spec)
	}
}
