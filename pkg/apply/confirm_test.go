package apply

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// TestConfirm verifies that an owner is confirmed if its stored spec and status are those of the
// view, and that only this confirms later views.
func TestConfirm(t *testing.T) {
	for name, test := range map[string]struct {
		change func(stored *corev1.Pod)
		want   bool
	}{
		"same":           {func(*corev1.Pod) {}, true},
		"another label":  {func(p *corev1.Pod) { p.Labels = map[string]string{"a": "1"} }, true},
		"a newer spec":   {func(p *corev1.Pod) { p.Generation = 3 }, false},
		"a newer status": {func(p *corev1.Pod) { p.Status.Message = "failed" }, false},
		"another object": {func(p *corev1.Pod) { p.UID = "successor" }, false},
		"it is gone":     {func(p *corev1.Pod) { p.Name = "other" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			view := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "owner", UID: "owner-uid", Generation: 2}}
			live := view.DeepCopy()
			test.change(live)
			applier, _ := newApplier(interceptor.Funcs{}, live)
			applier.ConfirmOwners = true
			for range 2 {
				if err := applier.Confirm(t.Context(), view); (err == nil) != test.want || err != nil && !apierrors.IsConflict(err) {
					t.Errorf("error %v", err)
				}
			}
			if test.want {
				if err := applier.Client.Delete(t.Context(), live); err != nil {
					t.Fatal(err)
				}
				if err := applier.Confirm(t.Context(), view); err != nil {
					t.Errorf("read again: %v", err)
				}
			}
		})
	}
}
