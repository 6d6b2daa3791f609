package simulation

import (
	"testing"
	"time"

	"github.com/example/nginx-operator/test/simulation/storage"
	"github.com/example/nginx-operator/test/simulation/world"
)

// TestRefusedRenewalIsNotReported verifies that the status reports the certificate that Pods mount,
// and not the renewed one, while the Deployment cannot be written.
func TestRefusedRenewalIsNotReported(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world.World) {
		w.RenewCertificate()
		first := w.Certificates["cert"].NotAfter
		instance := newInstance("web")
		world.UseCertificate(&instance.Spec)
		serve(t, w, instance)
		reports := func(want time.Time) {
			t.Helper()
			if got := w.Instance("web").Status.Certificates; len(got) != 1 || !got[0].NotAfter.Time.Equal(want) {
				t.Errorf("the status reports %+v, and not the certificate until %s", got, want)
			}
		}
		reports(first)

		w.Faults.Refuse = map[*storage.Resource]error{storage.Deployments: world.Denied(storage.Deployments, "web")}
		w.Run(time.Hour)
		w.RenewCertificate()
		w.Run(10 * time.Minute)
		reports(first)

		w.Faults.Refuse = nil
		w.Run(30 * time.Minute)
		reports(w.Certificates["cert"].NotAfter)
	})
}
