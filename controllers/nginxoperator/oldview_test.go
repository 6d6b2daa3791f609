package nginxoperator

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/fixture"
	"github.com/example/nginx-operator/pkg/apply"
)

// TestOldViewOfAnInstance verifies that a new process whose view of the NginxOperators alone is old
// neither repeats a failed rollout nor removes the failure from the status.
func TestOldViewOfAnInstance(t *testing.T) {
	for name, paused := range map[string]bool{"a child differs": false, "only the status differs": true} {
		t.Run(name, func(t *testing.T) {
			p := newProcess(t)
			p.rollOut(podReady)
			p.edit(func(s *v1alpha2.NginxOperatorSpec) { s.Image = "nginx:other" })
			p.rollOut(podCrashing)
			p.rollOut(podReady)
			p.edit(func(s *v1alpha2.NginxOperatorSpec) { s.Paused = paused })
			current := p.object()
			if p.image() != fixture.Image || len(current.Status.FailedRevisions) == 0 {
				t.Fatalf("not rolled back: %s, %+v", p.image(), current.Status)
			}

			p.reconciler.Applier = NewApplier(p, p, func(string, apply.Verb) {})
			old := current.DeepCopy()
			old.Status.FailedRevisions, old.Status.Conditions = nil, nil
			result, err := p.reconciler.Reconcile(t.Context(), old)
			if err != nil || !result.Requeue { //nolint:staticcheck // see Reconcile
				t.Errorf("%+v, %v", result, err)
			}
			if p.image() != fixture.Image || !equality.Semantic.DeepEqual(p.status(), current.Status) {
				t.Errorf("image %s, status %+v", p.image(), p.status())
			}
			p.reconcile()
			if p.image() != fixture.Image || len(p.status().FailedRevisions) == 0 {
				t.Errorf("with the current view: image %s, status %+v", p.image(), p.status())
			}
		})
	}
}
