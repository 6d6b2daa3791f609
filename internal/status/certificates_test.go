package status

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/fixture"
	"github.com/example/nginx-operator/internal/keypair"
	"github.com/example/nginx-operator/internal/operand"
	"github.com/example/nginx-operator/internal/snapshot"
)

// TestCertificatesValid verifies that the condition changes when three tenths of a certificate's
// lifetime are left, and at its end. The delay until the next change is returned.
func TestCertificatesValid(t *testing.T) {
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	day := 24 * time.Hour
	certificates := []operand.Certificate{
		{Secret: "long", Certificate: keypair.Certificate{NotBefore: begin, NotAfter: begin.Add(1000 * day)}},
		{Secret: "short", Certificate: keypair.Certificate{NotBefore: begin, NotAfter: begin.Add(100 * day)}},
	}
	for at, want := range map[time.Duration]struct {
		status metav1.ConditionStatus
		reason string
		again  time.Duration
	}{
		0:              {metav1.ConditionTrue, v1alpha2.ReasonCertificatesValid, 70 * day},
		70*day - 1:     {metav1.ConditionTrue, v1alpha2.ReasonCertificatesValid, 1},
		70 * day:       {metav1.ConditionFalse, v1alpha2.ReasonCertificateExpiring, 30 * day},
		100 * day:      {metav1.ConditionFalse, v1alpha2.ReasonCertificateExpired, 600 * day},
		1000 * day:     {metav1.ConditionFalse, v1alpha2.ReasonCertificateExpired, 0},
		99*day + day/2: {metav1.ConditionFalse, v1alpha2.ReasonCertificateExpiring, day / 2},
	} {
		got, again := certificatesValid(certificates, begin.Add(at))
		if got.Status != want.status || got.Reason != want.reason || again != want.again || !strings.Contains(got.Message, `"short"`) {
			t.Errorf("after %s: %s %s %q, again after %s", at, got.Status, got.Reason, got.Message, again)
		}
	}
	if got, again := certificatesValid(nil, begin); got != nil || again != 0 {
		t.Errorf("without certificates: %+v after %s", got, again)
	}
}

// TestStatusOfCertificates verifies that an object without certificates has no condition and no
// entries for them. While a Secret cannot be read, both stay.
func TestStatusOfCertificates(t *testing.T) {
	object := fixture.NewObject()
	result := newOutcome(t, object)
	result.Certificates = []operand.Certificate{{Secret: "shop", Certificate: keypair.Certificate{
		NotBefore: time.Now(), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{"shop.example.com"}, Issuer: "CA",
	}}}
	has := func(want int) {
		t.Helper()
		object.Status = statusOf(object, snapshot.Observed{}, result)
		if got := object.Status; len(got.Certificates) != want || len(got.Conditions) != 3+want {
			t.Errorf("%+v, conditions %+v", got.Certificates, got.Conditions)
		}
	}
	has(1)
	result.Certificates, result.Resolved = nil, false
	has(1)
	result.Resolved = true
	has(0)
}
