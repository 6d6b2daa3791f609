package nginxoperator

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/keypair"
)

// usable is a certificate that nginx can use, by the name of its Secret.
type usable struct {
	secret string
	keypair.Certificate
}

// warnsAt is when a certificate counts as near its end: three tenths of its lifetime before. cert-manager and others renew at a third.
func (u usable) warnsAt() time.Time {
	return u.NotAfter.Add(-3 * (u.NotAfter.Sub(u.NotBefore) / 10))
}

// reportOf returns what the status says of certificates.
func reportOf(certificates []usable) []v1alpha2.Certificate {
	var out []v1alpha2.Certificate
	for _, one := range certificates {
		out = append(out, v1alpha2.Certificate{
			SecretName: one.secret, NotAfter: metav1.NewTime(one.NotAfter), DNSNames: slices.Clone(one.DNSNames), Issuer: one.Issuer,
		})
	}
	return out
}

// certificatesValid returns the condition at a time, and when it is to be looked at again; both are nothing without certificates.
func certificatesValid(certificates []usable, now time.Time) (found *metav1.Condition, again time.Duration) {
	if len(certificates) == 0 {
		return nil, 0
	}
	told := slices.MinFunc(certificates, func(a, b usable) int { return a.NotAfter.Compare(b.NotAfter) })
	status, reason, words := metav1.ConditionTrue, v1alpha2.ReasonCertificatesValid, "the first to expire is that of Secret %q, at %s"
	expiring := slices.IndexFunc(certificates, func(one usable) bool { return !now.Before(one.warnsAt()) })
	switch {
	case !now.Before(told.NotAfter):
		status, reason = metav1.ConditionFalse, v1alpha2.ReasonCertificateExpired
		words = "the certificate of Secret %q expired at %s: renew it"
	case expiring >= 0:
		status, reason, told = metav1.ConditionFalse, v1alpha2.ReasonCertificateExpiring, certificates[expiring]
		words = "the certificate of Secret %q expires at %s and was not renewed: look at what renews it"
	}
	out := condition(v1alpha2.ConditionCertificatesValid, status, reason,
		fmt.Sprintf(words, told.secret, told.NotAfter.UTC().Format(time.RFC3339)))
	for _, one := range certificates {
		for _, moment := range []time.Time{one.warnsAt(), one.NotAfter} {
			if moment.After(now) {
				again = sooner(again, moment.Sub(now))
			}
		}
	}
	return &out, again
}
