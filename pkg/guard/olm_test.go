package guard

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/pkg/certificates"
)

// newSecret returns a Secret with another certificate, whose CA is under a key.
func newSecret(t *testing.T, caKey string) *corev1.Secret {
	t.Helper()
	data, err := certificates.New(service.hosts(), certificates.Lifetime)
	if err != nil {
		t.Fatal(err)
	}
	ca := data[certificates.CAKey]
	delete(data, certificates.CAKey)
	data[caKey] = ca
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "system", Name: "cert", OwnerReferences: []metav1.OwnerReference{{
			APIVersion: csvKind.APIVersion, Kind: csvKind.Kind, Name: "nginx-operator.v0.1.0", UID: "1",
			BlockOwnerDeletion: ptr.To(false), Controller: ptr.To(false),
		}}},
		Type: corev1.SecretTypeTLS,
		Data: data,
	}
}

// csvName is the name of newCSV, the ClusterServiceVersion of the release under test.
const csvName = "nginx-operator.v0.2.0"

func newCSV() client.Object {
	csv := &metav1.PartialObjectMetadata{TypeMeta: csvKind}
	csv.Namespace, csv.Name, csv.UID = "system", csvName, "2"
	return csv
}

// TestUnderOLM verifies that, under OLM, the replica adds its ClusterServiceVersion to the owners
// of the Secret before it is ready, once, next to the previous one. It does not change the
// certificate and the webhook configurations.
func TestUnderOLM(t *testing.T) {
	c := newCluster(t)
	g := c.replica(csvName)
	if _, err := g.reconcile(t.Context()); err == nil || !strings.Contains(err.Error(), "waiting for OLM") {
		t.Errorf("want that it waits, got %v", err)
	}
	c.must(c.client.Create(t.Context(), newSecret(t, olmCAKey)))
	if _, err := g.reconcile(t.Context()); !apierrors.IsNotFound(err) || g.Ready() == nil {
		t.Errorf("without a ClusterServiceVersion: want that it is not found, got %v", err)
	}
	c.must(c.client.Create(t.Context(), newCSV()))
	owned := func() {
		t.Helper()
		c.reconcile(g)
		c.must(g.Ready())
		want := slices.Concat(newSecret(t, olmCAKey).OwnerReferences, []metav1.OwnerReference{{
			APIVersion: csvKind.APIVersion, Kind: csvKind.Kind, Name: csvName, UID: "2",
			BlockOwnerDeletion: ptr.To(false), Controller: ptr.To(false),
		}})
		if diff := cmp.Diff(want, c.secret().OwnerReferences); diff != "" {
			t.Error(diff)
		}
	}
	owned()
	before := c.writes
	owned()
	if c.writes != before {
		t.Errorf("%d writes in a reconcile in which nothing was wrong", c.writes-before)
	}
	if diff := cmp.Diff(map[string]int{RestoredOwner: 1, RestoredConversion: 1}, c.restores); diff != "" {
		t.Error(diff)
	}
	// OLM creates another Secret.
	c.must(c.client.Delete(t.Context(), c.secret()))
	c.must(c.client.Create(t.Context(), newSecret(t, olmCAKey)))
	owned()
}

// converts requires that the API server can call a replica for the conversion.
func (c *cluster) converts(g *Guard) {
	c.t.Helper()
	config := c.crd().Spec.Conversion.Webhook.ClientConfig
	certificate, err := g.GetCertificate(nil)
	c.must(err)
	if err := verify(certificate.Leaf, config.CABundle); err != nil || config.Service.Name != "webhooks" {
		c.t.Errorf("the conversion calls %+v: %v", config.Service, err)
	}
}

// TestSecretIsGone verifies that the last certificate is still served and trusted while the Secret
// is missing or broken.
func TestSecretIsGone(t *testing.T) {
	for name, spoil := range map[string]func(*cluster){
		"gone":                    func(c *cluster) { c.must(c.client.Delete(t.Context(), c.secret())) },
		"without a key":           func(c *cluster) { c.spoil("tls.key") },
		"without anything at all": func(c *cluster) { c.spoil("tls.key", "tls.crt", olmCAKey) },
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, newSecret(t, olmCAKey), newCSV())
			c.t = t
			g := c.replica(csvName)
			c.reconcile(g)
			before, err := g.GetCertificate(nil)
			c.must(err)
			spoil(c)
			crd := c.crd()
			crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter}
			c.must(c.client.Update(t.Context(), crd))
			if _, err := g.reconcile(t.Context()); err == nil {
				t.Error("it does not say that the Secret is of no use")
			}
			after, err := g.GetCertificate(nil)
			c.must(err)
			if !after.Leaf.Equal(before.Leaf) {
				t.Error("it serves something else")
			}
			if conversion := c.crd().Spec.Conversion; conversion.Strategy != apiextensionsv1.WebhookConverter {
				t.Error("the conversion is not back")
			} else if err := verify(after.Leaf, conversion.Webhook.ClientConfig.CABundle); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestUnderOLMv1 verifies the guard under OLM v1. Either cert-manager creates the Secret with its
// CA, or OpenShift's service CA creates it and writes its CA only to the CRD. The Secret has no
// ClusterServiceVersion as an owner.
func TestUnderOLMv1(t *testing.T) {
	for name, caKey := range map[string]string{"cert-manager": certificates.CAKey, "service CA": ""} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			g := c.replica("")
			g.options.OLM = true
			if _, err := g.reconcile(t.Context()); err == nil || !strings.Contains(err.Error(), "waiting for OLM") {
				t.Errorf("want that it waits, got %v", err)
			}
			secret := newSecret(t, caKey)
			ca := secret.Data[caKey]
			delete(secret.Data, "")
			secret.OwnerReferences = nil
			c.must(c.client.Create(t.Context(), secret))
			trust := func(bundle []byte) {
				crd := c.crd()
				crd.Spec.Conversion = conversionTo(serviceConfig("webhooks"), bundle)
				c.must(c.client.Update(t.Context(), crd))
			}
			if caKey == "" {
				other := newSecret(t, olmCAKey).Data[olmCAKey]
				trust(other)
				if _, err := g.reconcile(t.Context()); err == nil || !strings.Contains(err.Error(), "waiting for the CA") || g.Ready() == nil {
					t.Errorf("want that it waits for the CA, got %v", err)
				}
				trust(append(other, ca...))
			}
			c.reconcile(g)
			c.must(g.Ready())
			writes := c.writes
			// A client that applies the CRD removes the CA and the address.
			for _, broken := range []*apiextensionsv1.CustomResourceConversion{
				conversionTo(serviceConfig("webhooks"), nil), conversionTo(serviceConfig("other"), ca), {Strategy: apiextensionsv1.NoneConverter},
			} {
				crd := c.crd()
				crd.Spec.Conversion = broken
				c.must(c.client.Update(t.Context(), crd))
				c.reconcile(g)
				c.converts(g)
			}
			if c.writes != writes+6 {
				t.Errorf("%d writes, want one for each that was broken", c.writes-writes-3)
			}
			if len(c.secret().OwnerReferences) > 0 {
				t.Error("it owns the Secret")
			}
		})
	}
}

func (c *cluster) spoil(keys ...string) {
	secret := c.secret()
	for _, key := range keys {
		delete(secret.Data, key)
	}
	c.must(c.client.Update(c.t.Context(), secret))
}
