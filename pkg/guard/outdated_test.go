package guard

import (
	"crypto/x509"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/cert"

	"github.com/example/nginx-operator/pkg/certificates"
)

// TestOutdatedKeyIsReplaced verifies that an RSA certificate, as releases before 0.7.1 created it,
// is served until the webhooks trust its successor. A replica that starts in between works, too.
func TestOutdatedKeyIsReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, newRSASecret(t, certificates.CAKey, map[string]string{labelManagedBy: operatorName}, nil))
		first, second, late := c.replica(""), c.replica(""), c.replica("")
		for _, g := range []*Guard{first, second} {
			if again := c.reconcile(g); again != propagation {
				t.Errorf("it reads the outdated certificate again after %s", again)
			}
		}
		old := c.works(first)
		if certificates.Outdated(old) == nil || c.restores[RestoredCertificate] != 0 {
			t.Error("the stored certificate is not served first")
		}

		time.Sleep(propagation)
		for _, g := range []*Guard{first, second} {
			if again := c.reconcile(g); again != propagation {
				t.Errorf("the new certificate waits for %s", again)
			}
			if !c.works(g).Equal(old) {
				t.Error("the new certificate is served at once")
			}
		}
		c.reconcile(late)
		if certificates.Outdated(c.works(late)) != nil {
			t.Error("the replica that starts late serves the outdated certificate")
		}

		time.Sleep(propagation)
		var now []*x509.Certificate
		for _, g := range []*Guard{first, second, late} {
			if again := c.reconcile(g); again < certificates.Lifetime/2 {
				t.Errorf("it looks again after %s", again)
			}
			now = append(now, c.works(g))
		}
		if certificates.Outdated(now[0]) != nil || !now[0].Equal(now[1]) || !now[0].Equal(now[2]) || c.restores[RestoredCertificate] != 1 {
			t.Errorf("the replicas serve %s, %s, and %s after %d renewals",
				now[0].PublicKeyAlgorithm, now[1].PublicKeyAlgorithm, now[2].PublicKeyAlgorithm, c.restores[RestoredCertificate])
		}
	})
}

// TestOthersKeysStay verifies that the guard never replaces an RSA certificate of another
// component.
func TestOthersKeysStay(t *testing.T) {
	own := map[string]string{labelManagedBy: operatorName}
	for name, test := range map[string]struct {
		caKey               string
		labels, annotations map[string]string
		olm                 bool
	}{
		"without a label":            {caKey: certificates.CAKey},
		"taken over by cert-manager": {caKey: certificates.CAKey, labels: own, annotations: map[string]string{issuedByAnnotation: "a"}},
		"of OLM":                     {caKey: olmCAKey, labels: own, olm: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(t, newRSASecret(t, test.caKey, test.labels, test.annotations))
				g := c.replica("")
				g.options.OLM = test.olm
				stored := c.secret().Data
				for range 3 {
					if again := c.reconcile(g); again == propagation {
						t.Error("it waits for another certificate")
					}
					time.Sleep(propagation)
				}
				if diff := cmp.Diff(stored, c.secret().Data); diff != "" {
					t.Errorf("the operator wrote another certificate:\n%s", diff)
				}
			})
		})
	}
}

// newRSASecret returns a Secret as releases before 0.7.1 created it, with its CA under a key.
func newRSASecret(t *testing.T, caKey string, labels, annotations map[string]string) *corev1.Secret {
	t.Helper()
	hosts := service.hosts()
	chain, key, err := cert.GenerateSelfSignedCertKeyWithOptions(cert.SelfSignedCertKeyOptions{
		Host: hosts[0], AlternateDNS: hosts[1:], MaxAge: certificates.Lifetime,
	})
	if err != nil {
		t.Fatal(err)
	}
	parts, err := cert.ParseCertsPEM(chain)
	if err != nil {
		t.Fatal(err)
	}
	ca, err := cert.EncodeCertificates(parts[1])
	if err != nil {
		t.Fatal(err)
	}
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "system", Name: "cert", Labels: labels, Annotations: annotations},
		Type:       corev1.SecretTypeTLS,
		Data:       map[string][]byte{corev1.TLSCertKey: chain, corev1.TLSPrivateKeyKey: key, caKey: ca},
	}
}
