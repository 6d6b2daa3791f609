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

	"github.com/example/nginx-operator/internal/certificates"
)

func newOLMSecret(t *testing.T) *corev1.Secret {
	t.Helper()
	data, err := certificates.New(service.hosts(), certificates.Lifetime)
	if err != nil {
		t.Fatal(err)
	}
	data[olmCAKey] = data[certificates.CAKey]
	delete(data, certificates.CAKey)
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "system", Name: "cert", OwnerReferences: []metav1.OwnerReference{{
			APIVersion: csvKind.APIVersion, Kind: csvKind.Kind, Name: "nginx-operator.v0.1.0", UID: "1",
			BlockOwnerDeletion: ptr.To(false), Controller: ptr.To(false),
		}}},
		Type: corev1.SecretTypeTLS,
		Data: data,
	}
}

func newCSV(name string) client.Object {
	csv := &metav1.PartialObjectMetadata{TypeMeta: csvKind}
	csv.Namespace, csv.Name, csv.UID = "system", name, "2"
	return csv
}

// Under OLM the replica makes its ClusterServiceVersion an owner of the Secret before it is ready, once, beside the one
// before; it leaves certificate and webhook configurations to OLM.
func TestUnderOLM(t *testing.T) {
	const name = "nginx-operator.v0.2.0"
	c := newCluster(t, newCSV(name))
	g := c.replica(name)
	if _, err := g.reconcile(t.Context()); err == nil || !strings.Contains(err.Error(), "waiting for OLM") {
		t.Errorf("want that it waits, got %v", err)
	}
	c.must(c.client.Create(t.Context(), newOLMSecret(t)))
	owned := func() {
		t.Helper()
		c.reconcile(g)
		c.must(g.Ready())
		want := slices.Concat(newOLMSecret(t).OwnerReferences, []metav1.OwnerReference{{
			APIVersion: csvKind.APIVersion, Kind: csvKind.Kind, Name: name, UID: "2",
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
	// OLM makes another one.
	c.must(c.client.Delete(t.Context(), c.secret()))
	c.must(c.client.Create(t.Context(), newOLMSecret(t)))
	owned()
}

// Without its ClusterServiceVersion the replica is not ready: its Secret could go with the release before at any time.
func TestUnderOLMWithoutCSV(t *testing.T) {
	c := newCluster(t, newOLMSecret(t))
	g := c.replica("nginx-operator.v0.2.0")
	if _, err := g.reconcile(t.Context()); !apierrors.IsNotFound(err) || g.Ready() == nil {
		t.Errorf("want that it is not found, got %v", err)
	}
}

// While the Secret is gone or broken, what is served goes on, and is kept trusted.
func TestSecretIsGone(t *testing.T) {
	for name, spoil := range map[string]func(*cluster){
		"gone":                    func(c *cluster) { c.must(c.client.Delete(t.Context(), c.secret())) },
		"without a key":           func(c *cluster) { c.spoil("tls.key") },
		"without a CA":            func(c *cluster) { c.spoil(olmCAKey) },
		"without anything at all": func(c *cluster) { c.spoil("tls.key", "tls.crt", olmCAKey) },
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, newOLMSecret(t), newCSV("nginx-operator.v0.2.0"))
			c.t = t
			g := c.replica("nginx-operator.v0.2.0")
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

func (c *cluster) spoil(keys ...string) {
	secret := c.secret()
	for _, key := range keys {
		delete(secret.Data, key)
	}
	c.must(c.client.Update(c.t.Context(), secret))
}
