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
	"k8s.io/utils/ptr"
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
	const refused = "spec.config.inline: line 2: clients refuse the certificate in Secret shop: "
	if told := warnings.list(); len(told) != 1 || !strings.HasPrefix(told[0], refused) {
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

// challenged is a configuration that answers ACME challenges, and serves the certificate that they
// are for.
const challenged = `server {
    listen 8080;
    location ^~ /.well-known/acme-challenge/ { proxy_pass http://127.0.0.1:8089; }
    location / { return 301 https://$host$request_uri; }
}
server {
    listen 8443 ssl;
    server_name web.example.com;
    ssl_certificate /etc/nginx/tls/site/tls.crt;
    ssl_certificate_key /etc/nginx/tls/site/tls.key;
    root /usr/share/nginx/html;
}
`

// TestTemporaryCertificate verifies that an instance that answers the ACME challenge for its own
// certificate is blocked with the remedy until a temporary certificate exists. It becomes ready
// with the temporary one, and rolls out the issued one. The test writes the Secret as cert-manager
// does.
func TestTemporaryCertificate(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	createWeb(t, namespace, func(s *v1alpha2.NginxOperatorSpec) {
		s.TLS = []v1alpha2.TLS{{SecretName: "site", Port: ptr.To[int32](443), TargetPort: ptr.To[int32](8443)}}
		s.Config = &v1alpha2.Config{Inline: challenged}
	})
	waitForBlocker(t, namespace, v1alpha2.ReasonReferenceNotFound, `cert-manager.io/issue-temporary-certificate: "true"`)

	// cert-manager may create the Secret before it has a certificate.
	secret := newSecret(namespace, "site", map[string][]byte{corev1.TLSCertKey: {}, corev1.TLSPrivateKeyKey: {}})
	create(t, secret)
	waitForBlocker(t, namespace, v1alpha2.ReasonInvalidReference, "spec.tls[0].secretName: ")
	if got := must1(childrenOf(t.Context(), namespace, "web"))(t); got.deployment != nil {
		t.Error("a Deployment exists without a certificate")
	}

	end := time.Now().Add(time.Hour).Truncate(time.Second)
	update(t, secret, func(s *corev1.Secret) { s.Data = newCertificateOf(t, time.Now(), end) })
	waitForNoBlocker(t, namespace)
	first := waitForChildren(t, namespace, "web")
	makeReady(t, namespace, "web")
	servesUntil(t, namespace, end)

	update(t, secret, func(s *corev1.Secret) { s.Data = newCertificateOf(t, time.Now(), end.Add(time.Hour)) })
	second := waitForGeneration(t, namespace, first.deployment.Generation+1)
	const digest = "operator.example.com/certificates"
	before, after := first.deployment.Spec.Template.Annotations[digest], second.deployment.Spec.Template.Annotations[digest]
	if before == after || after == "" {
		t.Errorf("the Pod template has the certificates %q, had %q", after, before)
	}
	waitForCondition(t, namespace, "web", v1alpha2.ConditionReady, metav1.ConditionFalse, v1alpha2.ReasonRolloutInProgress)
	makeReady(t, namespace, "web")
	servesUntil(t, namespace, end.Add(time.Hour))
	waitForNoBlocker(t, namespace)
}

// servesUntil waits until the status lists one certificate, which expires at a time.
func servesUntil(t *testing.T, namespace string, end time.Time) {
	t.Helper()
	waitForStatus(t, namespace, "web", func(got *v1alpha2.NginxOperator) error {
		if list := got.Status.Certificates; len(list) != 1 || !list[0].NotAfter.Time.Equal(end) {
			return fmt.Errorf("certificates %+v, want one until %s", list, end)
		}
		return nil
	})
}
