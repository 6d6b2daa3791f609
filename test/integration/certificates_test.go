package integration

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
)

// TestCertificatesAreReported verifies that the status lists the certificates. A condition and an
// Event report a certificate that was not renewed, until it is renewed.
func TestCertificatesAreReported(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	end := time.Now().Add(2 * time.Hour).Truncate(time.Second)
	secret := newSecret(namespace, "shop", newCertificateOf(t, end.Add(-10*time.Hour), end))
	create(t, secret)
	object := createWeb(t, namespace, func(s *v1alpha2.NginxOperatorSpec) { s.TLS = []v1alpha2.TLS{{SecretName: "shop"}} })
	condition := v1alpha2.ConditionCertificatesValid
	waitForCondition(t, namespace, "web", condition, metav1.ConditionFalse, v1alpha2.ReasonCertificateExpiring)
	waitForEvent(t, namespace, corev1.EventTypeWarning, v1alpha2.ReasonCertificateExpiring, 1)
	got := must1(waitForStatusOnce(t.Context(), namespace, "web"))(t).Status.Certificates
	if len(got) != 1 || got[0].SecretName != "shop" || !got[0].NotAfter.Time.Equal(end) || got[0].Issuer != "test CA" ||
		len(got[0].DNSNames) != 1 || got[0].DNSNames[0] != "web.example.com" {
		t.Errorf("certificates %+v", got)
	}

	warnings := &recordedWarnings{}
	c := warningClient(t, warnings)
	for _, name := range []string{"blog.example.com", "web.example.com"} {
		config := fmt.Sprintf("server { listen 8080; listen 8443 ssl; server_name %s;\n"+
			"ssl_certificate /etc/nginx/tls/shop/tls.crt; ssl_certificate_key /etc/nginx/tls/shop/tls.key; }", name)
		patch := fmt.Appendf(nil, `{"spec":{"config":{"inline":%q}}}`, config)
		must(t, c.Patch(t.Context(), object, client.RawPatch(types.MergePatchType, patch)))
	}
	if told := warnings.list(); len(told) != 1 || !strings.HasPrefix(told[0], "spec.config.inline: line 2: ssl_certificate: ") {
		t.Errorf("warnings %q", told)
	}

	update(t, secret, func(s *corev1.Secret) { s.Data = newCertificate(t) })
	waitForCondition(t, namespace, "web", condition, metav1.ConditionTrue, v1alpha2.ReasonCertificatesValid)
	update(t, secret, func(s *corev1.Secret) {
		s.Data = newCertificateOf(t, end.Add(-10*time.Hour), time.Now().Add(-time.Minute))
	})
	waitForCondition(t, namespace, "web", condition, metav1.ConditionFalse, v1alpha2.ReasonCertificateExpired)
	update(t, object, func(o *v1alpha2.NginxOperator) { o.Spec.TLS, o.Spec.Config = nil, nil })
	waitForStatus(t, namespace, "web", func(got *v1alpha2.NginxOperator) error {
		if len(got.Status.Certificates) > 0 || meta.FindStatusCondition(got.Status.Conditions, condition) != nil {
			return fmt.Errorf("without certificates the status says %+v, %+v", got.Status.Certificates, got.Status.Conditions)
		}
		return nil
	})
}
