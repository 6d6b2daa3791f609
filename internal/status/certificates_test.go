package status

import (
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/failure"
	"github.com/example/nginx-operator/internal/fixture"
	"github.com/example/nginx-operator/internal/keypair"
	"github.com/example/nginx-operator/internal/live"
	"github.com/example/nginx-operator/internal/operand"
	"github.com/example/nginx-operator/internal/resolve"
	"github.com/example/nginx-operator/internal/rollout"
	"github.com/example/nginx-operator/internal/wellknown"
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
		object.Status = statusOf(object, live.Observed{}, result)
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

// TestCertificatesOfRunningPods verifies that the status has the certificates that Pods mount while
// a missing Secret keeps a renewed certificate from them, and that the condition names both
// Secrets.
func TestCertificatesOfRunningPods(t *testing.T) {
	object, end := fixture.NewObject(), time.Now().Add(time.Hour).Truncate(time.Second)
	certificate := func(secret string, notAfter time.Time) operand.Certificate {
		return operand.Certificate{Secret: secret, Certificate: keypair.Certificate{NotBefore: end.Add(-24 * time.Hour), NotAfter: notAfter}}
	}
	state := live.Observed{Deployment: fixture.NewDeployment(1, func(d *appsv1.Deployment) {
		d.Spec.Template.Annotations = map[string]string{wellknown.AnnotationCertificates: "mounted"}
	})}
	result := newOutcome(t, object)
	result.CertificatesHash = "mounted"
	result.Certificates = []operand.Certificate{certificate("a", end.Add(40*time.Hour)), certificate("b", end.Add(50*time.Hour))}
	object.Status = statusOf(object, state, result)
	before := object.Status.DeepCopy()

	result.CertificatesHash, result.Certificates = "current", []operand.Certificate{certificate("a", end.Add(100*time.Hour))}
	result.State, result.Blockers = rollout.StateUnusable, []failure.Failure{{Reason: v1alpha2.ReasonReferenceNotFound, Message: "other"}}
	result.Unusable = []resolve.Unusable{{
		Failure: failure.Failure{Reason: v1alpha2.ReasonReferenceNotFound, Message: `Secret "b" does not exist`}, Object: `Secret "b"`,
	}}
	for range 2 {
		object.Status = statusOf(object, state, result)
		valid := meta.FindStatusCondition(object.Status.Conditions, v1alpha2.ConditionCertificatesValid)
		if !equality.Semantic.DeepEqual(object.Status.Certificates, before.Certificates) || valid.Reason != v1alpha2.ReasonCertificatesValid ||
			strings.Count(valid.Message, `"a"`) != 2 || strings.Count(valid.Message, `"b"`) != 1 {
			t.Errorf("%+v, %+v", object.Status.Certificates, valid)
		}
		if blocked := object.Status.BlockedBy; len(blocked) != 2 || blocked[0].Message != result.Unusable[0].Message {
			t.Errorf("blocked by %+v", blocked)
		}
	}

	result.Unusable = nil
	object.Status = statusOf(object, state, result)
	object.Status.Certificates[0].NotAfter = metav1.NewTime(time.Now().Add(-time.Minute))
	valid := meta.FindStatusCondition(statusOf(object, state, result).Conditions, v1alpha2.ConditionCertificatesValid)
	if valid.Reason != v1alpha2.ReasonCertificateExpired || !strings.HasSuffix(valid.Message, "other") {
		t.Errorf("after its end: %+v", valid)
	}
}
