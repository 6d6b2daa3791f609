package guard

import (
	"crypto/x509"
	"testing"
	"testing/synctest"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/pkg/certificates"
)

// TestWebhookMovesOn verifies that a replica serves its next certificate as soon as a webhook
// trusts only that one, and not before. cert-manager and OLM v0 keep no previous CA.
func TestWebhookMovesOn(t *testing.T) {
	for name, installed := range map[string]struct {
		olm        bool
		csv, caKey string
	}{
		"without OLM": {caKey: certificates.CAKey},
		"OLM v0":      {olm: true, csv: csvName, caKey: olmCAKey},
		"OLM v1":      {olm: true, caKey: certificates.CAKey},
	} {
		for kind, configuration := range map[string]client.Object{
			"mutating":   &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: mutatingName}},
			"validating": &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: validatingName}},
			"CRD":        newCRD(),
		} {
			t.Run(name+"/"+kind, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					c := newCluster(t, newSecret(t, installed.caKey), newCSV())
					g := c.replica(installed.csv)
					g.options.OLM = installed.olm
					c.inject(configuration, c.secret().Data[installed.caKey])
					c.reconcile(g)
					old := c.served(g)

					ca := c.renew(installed.caKey)
					if again := c.reconcile(g); again != propagation {
						t.Errorf("it waits for %s", again)
					}
					c.follow(g)
					if !c.served(g).Equal(old) {
						t.Error("it serves the next certificate, which the webhook does not trust")
					}
					time.Sleep(propagation / 10)
					c.inject(configuration, nil)
					c.reconcile(g)
					c.follow(g)
					if !c.served(g).Equal(old) {
						t.Error("it serves the next certificate, although no webhook trusts only that one")
					}
					c.inject(configuration, ca)
					c.follow(g)
					if c.served(g).Equal(old) {
						t.Error("it serves a certificate that the webhook no longer trusts")
					}
				})
			})
		}
	}
}

// TestFollowDuringRestore verifies that a replica serves its next certificate while it still writes
// the CRD, and that the end of that write does not bring back an older certificate.
func TestFollowDuringRestore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, newSecret(t, certificates.CAKey))
		g := c.replica("")
		g.options.OLM = true
		c.reconcile(g)
		old := c.served(g)

		c.renew(certificates.CAKey)
		time.Sleep(c.reconcile(g)) // the next reconcile serves this certificate, unless it is replaced meanwhile
		c.inject(newCRD(), nil)
		validating := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: validatingName}}
		var served []*x509.Certificate
		c.refuse = func(object client.Object) error {
			if _, isCRD := object.(*apiextensionsv1.CustomResourceDefinition); isCRD {
				c.inject(validating, c.renew(certificates.CAKey))
				c.follow(g)
				served = append(served, c.served(g))
			}
			return nil
		}
		c.reconcile(g)
		if len(served) != 1 || served[0].Equal(old) || !c.served(g).Equal(served[0]) {
			t.Errorf("it followed %d times; it serves an older certificate: %t", len(served), !c.served(g).Equal(served[len(served)-1]))
		}
	})
}

// renew writes another certificate to the Secret, and returns its CA.
func (c *cluster) renew(caKey string) []byte {
	c.t.Helper()
	secret := c.secret()
	secret.Data = newSecret(c.t, caKey).Data
	c.must(c.client.Update(c.t.Context(), secret))
	return secret.Data[caKey]
}

// inject replaces the CA of all webhooks of a configuration or a CRD, as cert-manager does.
func (c *cluster) inject(configuration client.Object, ca []byte) {
	c.t.Helper()
	configuration = configuration.DeepCopyObject().(client.Object)
	c.must(c.client.Get(c.t.Context(), client.ObjectKeyFromObject(configuration), configuration))
	for _, config := range clientConfigs(configuration) {
		config.CABundle = ca
	}
	if crd, isCRD := configuration.(*apiextensionsv1.CustomResourceDefinition); isCRD {
		crd.Spec.Conversion.Webhook.ClientConfig.CABundle = ca
	}
	c.must(c.client.Update(c.t.Context(), configuration))
}

func (c *cluster) served(g *Guard) *x509.Certificate {
	c.t.Helper()
	certificate, err := g.GetCertificate(nil)
	c.must(err)
	return certificate.Leaf
}
