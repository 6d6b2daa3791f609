package status

import (
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/failure"
	"github.com/example/nginx-operator/internal/keypair"
	"github.com/example/nginx-operator/internal/operand"
	"github.com/example/nginx-operator/internal/requeue"
	"github.com/example/nginx-operator/internal/wellknown"
)

// warnsAt returns the time from which a certificate counts as expiring: three tenths of its
// lifetime before its end. cert-manager and others renew a third before the end.
func warnsAt(of operand.Certificate) time.Time {
	return of.NotAfter.Add(-3 * (of.NotAfter.Sub(of.NotBefore) / 10))
}

// notMounted precedes the part of a message about a certificate that Pods do not mount yet.
const notMounted = "; no Pod has the new certificate of Secret "

// mountedCertificates returns the certificates that Pods mount, or will mount if there is no
// Deployment, the condition about them, and the delay until that may change. While the Deployment
// has other certificates than the Secrets, these are the ones reported before. The condition then
// changes only if one of them expires, and names the reason why a renewed one is not mounted.
func mountedCertificates(
	reported v1alpha2.NginxOperatorStatus, deployment *appsv1.Deployment, result Outcome, now time.Time,
) ([]v1alpha2.Certificate, *metav1.Condition, time.Duration) {
	resolution := result.Resolution
	if deployment == nil || deployment.Spec.Template.Annotations[wellknown.AnnotationCertificates] == resolution.CertificatesHash {
		var mounted []v1alpha2.Certificate
		for _, certificate := range resolution.Certificates {
			mounted = append(mounted, v1alpha2.Certificate{
				SecretName: certificate.Secret, NotAfter: metav1.NewTime(certificate.NotAfter),
				DNSNames: slices.Clone(certificate.DNSNames), Issuer: certificate.Issuer,
			})
		}

		valid, again := certificatesValid(resolution.Certificates, now)
		return mounted, valid, again
	}

	var earlier []operand.Certificate
	renewed := ""
	for _, before := range reported.Certificates {
		isSame := func(current operand.Certificate) bool { return current.Secret == before.SecretName }
		at := slices.IndexFunc(resolution.Certificates, isSame)
		if at >= 0 && resolution.Certificates[at].NotAfter.Equal(before.NotAfter.Time) {
			earlier = append(earlier, resolution.Certificates[at])
			continue
		}

		// The start of the lifetime is unknown, so such a certificate expires without a warning.
		known := keypair.Certificate{NotBefore: before.NotAfter.Time, NotAfter: before.NotAfter.Time}
		earlier = append(earlier, operand.Certificate{Secret: before.SecretName, Certificate: known})
		if at >= 0 && renewed == "" {
			renewed = before.SecretName
		}
	}

	valid, again := certificatesValid(earlier, now)
	if before := meta.FindStatusCondition(reported.Conditions, v1alpha2.ConditionCertificatesValid); before != nil &&
		valid != nil && valid.Reason == v1alpha2.ReasonCertificatesValid {
		valid = before.DeepCopy()
		valid.Message, _, _ = strings.Cut(valid.Message, notMounted)
	}

	if why := result.whyUnchanged(); valid != nil && renewed != "" && why != "" {
		valid.Message = failure.Truncate(fmt.Sprintf("%s%s%q: %s", valid.Message, notMounted, renewed, why))
	}

	return reported.Certificates, valid, again
}

// certificatesValid returns the condition, or nil without certificates, and when it may change.
func certificatesValid(certificates []operand.Certificate, now time.Time) (found *metav1.Condition, again time.Duration) {
	if len(certificates) == 0 {
		return nil, 0
	}

	told := slices.MinFunc(certificates, func(a, b operand.Certificate) int { return a.NotAfter.Compare(b.NotAfter) })
	status, reason := metav1.ConditionTrue, v1alpha2.ReasonCertificatesValid
	words := "the certificate of Secret %q is the first to expire, at %s"
	expiring := slices.IndexFunc(certificates, func(one operand.Certificate) bool { return !now.Before(warnsAt(one)) })
	switch {
	case !now.Before(told.NotAfter):
		status, reason = metav1.ConditionFalse, v1alpha2.ReasonCertificateExpired
		words = "the certificate of Secret %q expired at %s: renew it"
	case expiring >= 0:
		status, reason, told = metav1.ConditionFalse, v1alpha2.ReasonCertificateExpiring, certificates[expiring]
		words = "the certificate of Secret %q expires at %s and was not renewed: check its issuer, for example cert-manager"
	}

	out := condition(v1alpha2.ConditionCertificatesValid, status, reason,
		fmt.Sprintf(words, told.Secret, told.NotAfter.UTC().Format(time.RFC3339)))
	for _, one := range certificates {
		for _, moment := range []time.Time{warnsAt(one), one.NotAfter} {
			if moment.After(now) {
				again = requeue.Soonest(again, moment.Sub(now))
			}
		}
	}

	return &out, again
}
