package apply

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// denials are the errors of a webhook that denies a request with one of the codes that mean
// something else if the API server itself answers.
func denials() map[string]error {
	out := map[string]error{}
	for code, reason := range map[int32]metav1.StatusReason{
		http.StatusBadRequest: metav1.StatusReasonBadRequest, http.StatusForbidden: metav1.StatusReasonForbidden,
		http.StatusNotFound: metav1.StatusReasonNotFound, http.StatusMethodNotAllowed: "", http.StatusConflict: "",
		http.StatusUnprocessableEntity: metav1.StatusReasonInvalid,
	} {
		out[fmt.Sprint(code)] = &apierrors.StatusError{ErrStatus: metav1.Status{
			Code: code, Reason: reason, Message: `admission webhook "cost.example.com" denied the request: the note is required`,
		}}
	}
	out["already exists"] = &apierrors.StatusError{ErrStatus: metav1.Status{
		Code: http.StatusConflict, Reason: metav1.StatusReasonAlreadyExists, Message: `admission webhook "cost.example.com" denied the request`,
	}}
	return out
}

// TestDenialIsReported verifies that a denied write is an error of its child for every code, and
// never a reason to start over or to count the write as done.
func TestDenialIsReported(t *testing.T) {
	for name, denial := range denials() {
		t.Run(name, func(t *testing.T) {
			denies, funcs := false, refusesServices(denial)
			funcs.Delete = func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error { return denial }
			funcs.Patch = func(
				ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, opts ...client.PatchOption,
			) error {
				if denies {
					return denial
				}
				return c.Patch(ctx, object, patch, opts...)
			}
			applier, _ := newApplier(funcs)
			service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
			apply := func(children ...client.Object) {
				t.Helper()
				applied, err := applier.ApplyAll(t.Context(), owner, nil, nil, nil, children)
				if err != nil || len(applied.Failures) != 1 || !strings.Contains(applied.Failures[0].Err.Error(), "denied the request") {
					t.Errorf("error %v, failures %v", err, applied.Failures)
				}
			}
			apply(service, deployment())

			denies = true
			changed := deployment()
			changed.Labels["a"] = "2"
			apply(changed)
			if pending, err := applier.Pending(t.Context(), owner, nil, nil, []client.Object{changed}, false); err != nil || len(pending) != 1 {
				t.Errorf("pending %v, %v", pending, err)
			}
			if err := applier.Delete(t.Context(), changed); err == nil {
				t.Error("a denied deletion counts as done")
			}
		})
	}
}

// TestDeniedRemoval verifies that a field stays in the record while admission denies its removal,
// and is removed once admission allows it, also by another process.
func TestDeniedRemoval(t *testing.T) {
	for name, denial := range denials() {
		t.Run(name, func(t *testing.T) {
			required := true
			applier, _ := newApplier(interceptor.Funcs{
				Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, opts ...client.PatchOption) error {
					if raw, err := patch.Data(object); err != nil || required && strings.Contains(string(raw), `"note":null`) {
						return denial
					}
					return c.Patch(ctx, object, patch, opts...)
				},
			})
			applier.apply(t, deployment())

			without := deployment()
			without.Spec.Template.Annotations = nil
			for range 2 {
				if _, err := applier.Apply(t.Context(), owner, nil, nil, without.DeepCopy()); err == nil || StartsOver(err) {
					t.Errorf("error %v", err)
				}
			}
			live := deployment()
			applier.read(t, live)
			if !strings.Contains(live.Annotations[annotation], "note") || live.Spec.Template.Annotations["note"] == "" {
				t.Errorf("the record %s of %v", live.Annotations[annotation], live.Spec.Template.Annotations)
			}

			required, applier.Memory = false, Memory{}
			applier.apply(t, without.DeepCopy())
			applier.read(t, live)
			if len(live.Spec.Template.Annotations) > 0 {
				t.Errorf("not removed: %v", live.Spec.Template.Annotations)
			}
		})
	}
}
