package apply

import (
	"context"
	"errors"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
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
		err     error
	}{
		"only the policy's change": {func(*appsv1.Deployment) {}, func(*appsv1.Deployment) error { return nil }, false, nil},
		"a label is added": {
			func(d *appsv1.Deployment) { d.Labels["b"] = "1" },
			func(d *appsv1.Deployment) error { d.Labels["b"] = "1"; return nil }, true, nil,
		},
		"an annotation is removed": {
			func(d *appsv1.Deployment) { d.Spec.Template.Annotations = nil },
			func(d *appsv1.Deployment) error { d.Spec.Template.Annotations = nil; return nil }, true, nil,
		},
		"the policy is gone": {
			func(*appsv1.Deployment) {},
			func(d *appsv1.Deployment) error { d.Spec.Template.Spec.Containers[0].Image = "nginx:1"; return nil }, true, nil,
		},
		"refused": {
			func(*appsv1.Deployment) {},
			func(*appsv1.Deployment) error { return apierrors.NewForbidden(resource, "web", errors.New("policy")) }, true, nil,
		},
		"a webhook without dry runs": {
			func(*appsv1.Deployment) {},
			func(*appsv1.Deployment) error { return apierrors.NewBadRequest("the webhook does not support dry run") }, true, nil,
		},
		"not answered": {func(*appsv1.Deployment) {}, func(*appsv1.Deployment) error { return unanswered }, true, unanswered},
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
			if _, err := applier.Apply(t.Context(), owner, nil, deployment()); err != nil {
				t.Fatal(err)
			}
			applier.memory = memory{} // a restart
			clear(counted)

			pending, err := applier.Pending(t.Context(), owner, nil, deployment(test.declare))
			if !errors.Is(err, test.err) || (len(pending) > 0) != test.pending && err == nil || tries != 1 || len(counted) > 0 {
				t.Errorf("pending %v, %v, after %d tries; writes %v", pending, err, tries, counted)
			}
			if test.pending {
				return
			}
			if pending, err := applier.Pending(t.Context(), owner, nil, deployment(test.declare)); len(pending) > 0 || err != nil || tries != 1 {
				t.Errorf("the next reconcile: pending %v, %v, after %d tries", pending, err, tries)
			}
		})
	}
}
