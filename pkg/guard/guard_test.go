package guard

import (
	"context"
	"crypto/x509"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/example/nginx-operator/pkg/certificates"
)

const (
	operatorName   = "shop-operator"
	crdName        = "shops.example.com"
	mutatingName   = "shop-operator-mutating"
	validatingName = "shop-operator-validating"
)

// cluster is the state that the replicas of the operator share.
type cluster struct {
	t      *testing.T
	client client.WithWatch
	// restores counts the restores by kind. writes counts all requests that change an object.
	restores map[string]int
	writes   int
	// refuse is called before each write.
	refuse func(object client.Object) error
}

// newCluster returns a cluster with the CRD, the webhook configurations, and additional objects.
func newCluster(t *testing.T, objects ...client.Object) *cluster {
	t.Helper()
	c := &cluster{t: t, restores: map[string]int{}, refuse: func(client.Object) error { return nil }}
	objects = append(objects, newCRD(),
		&admissionregistrationv1.MutatingWebhookConfiguration{
			ObjectMeta: metav1.ObjectMeta{Name: mutatingName},
			Webhooks:   []admissionregistrationv1.MutatingWebhook{{Name: "m", ClientConfig: admissionTo("/mutate")}},
		},
		&admissionregistrationv1.ValidatingWebhookConfiguration{
			ObjectMeta: metav1.ObjectMeta{Name: validatingName},
			Webhooks: []admissionregistrationv1.ValidatingWebhook{
				{Name: "v", ClientConfig: admissionTo("/validate")}, {Name: "w", ClientConfig: admissionTo("/w")},
			},
		})
	c.client = fake.NewClientBuilder().WithScheme(newScheme()).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, w client.WithWatch, object client.Object, options ...client.CreateOption) error {
			c.writes++
			if err := c.refuse(object); err != nil {
				return err
			}
			return w.Create(ctx, object, options...)
		},
		Update: func(ctx context.Context, w client.WithWatch, object client.Object, options ...client.UpdateOption) error {
			c.writes++
			if err := c.refuse(object); err != nil {
				return err
			}
			return w.Update(ctx, object, options...)
		},
	}).Build()
	return c
}

func admissionTo(path string) admissionregistrationv1.WebhookClientConfig {
	return admissionregistrationv1.WebhookClientConfig{
		Service: &admissionregistrationv1.ServiceReference{Namespace: "system", Name: "webhooks", Path: &path},
	}
}

func newCRD() *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: crdName},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Versions:   []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1alpha1", Storage: true}, {Name: "v1alpha2"}},
			Conversion: conversionTo(serviceConfig("webhooks"), nil),
		},
	}
}

// replica returns the guard of one replica of the operator.
func (c *cluster) replica(csv string) *Guard {
	return newGuard(Options{
		Name: operatorName, Namespace: "system", Secret: "cert", Endpoint: service, ConversionPath: "/convert", OLM: csv != "", CSV: csv,
		CRD: crdName, ConvertedVersion: "v1alpha2", Mutating: mutatingName, Validating: validatingName,
		Restored: func(kind string) { c.restores[kind]++ },
	}, c.client, c.client)
}

func (c *cluster) must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

// reconcile runs a successful reconcile, and returns the time until the next one.
func (c *cluster) reconcile(g *Guard) time.Duration {
	c.t.Helper()
	again, err := g.reconcile(c.t.Context())
	c.must(err)
	return again
}

// follow runs a successful follow.
func (c *cluster) follow(g *Guard) {
	c.t.Helper()
	_, err := g.follow(c.t.Context())
	c.must(err)
}

func (c *cluster) secret() *corev1.Secret {
	c.t.Helper()
	secret := &corev1.Secret{}
	c.must(c.client.Get(c.t.Context(), client.ObjectKey{Namespace: "system", Name: "cert"}, secret))
	return secret
}

func (c *cluster) crd() *apiextensionsv1.CustomResourceDefinition {
	c.t.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{}
	c.must(c.client.Get(c.t.Context(), client.ObjectKey{Name: crdName}, crd))
	return crd
}

// bundles returns the CAs (PEM) that the conversion and the admission trust, by webhook.
func (c *cluster) bundles() map[string][]byte {
	c.t.Helper()
	mutating, validating := &admissionregistrationv1.MutatingWebhookConfiguration{}, &admissionregistrationv1.ValidatingWebhookConfiguration{}
	c.must(c.client.Get(c.t.Context(), client.ObjectKey{Name: mutatingName}, mutating))
	c.must(c.client.Get(c.t.Context(), client.ObjectKey{Name: validatingName}, validating))
	return map[string][]byte{
		"convert":  c.crd().Spec.Conversion.Webhook.ClientConfig.CABundle,
		"mutate":   mutating.Webhooks[0].ClientConfig.CABundle,
		"validate": validating.Webhooks[0].ClientConfig.CABundle,
		"w":        validating.Webhooks[1].ClientConfig.CABundle,
	}
}

// works requires that the API server can call all webhooks of a replica, and returns the serving
// certificate.
func (c *cluster) works(g *Guard) *x509.Certificate {
	c.t.Helper()
	c.must(g.Ready())
	certificate, err := g.GetCertificate(nil)
	c.must(err)
	for name, bundle := range c.bundles() {
		if err := verify(certificate.Leaf, bundle); err != nil {
			c.t.Errorf("%s: %v", name, err)
		}
	}
	return certificate.Leaf
}

func verify(leaf *x509.Certificate, bundle []byte) error {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(bundle)
	_, err := leaf.Verify(x509.VerifyOptions{Roots: pool, DNSName: "webhooks.system.svc", CurrentTime: time.Now()})
	return err
}

// TestFirstPass verifies that the operator, in an empty cluster, creates its certificate and adds
// its CA. After that, there is nothing to write.
func TestFirstPass(t *testing.T) {
	c := newCluster(t)
	g := c.replica("")
	if _, err := g.GetCertificate(nil); err == nil || g.Ready() == nil {
		t.Error("it is ready without a certificate")
	}
	if again := c.reconcile(g); again < certificates.Lifetime/2 {
		t.Errorf("it looks again after %s", again)
	}
	c.works(g)
	if diff := cmp.Diff(map[string]int{RestoredCertificate: 1, RestoredConversion: 1, RestoredWebhooks: 2}, c.restores); diff != "" {
		t.Error(diff)
	}
	secret := c.secret()
	if secret.Type != corev1.SecretTypeTLS || secret.Labels[labelManagedBy] != operatorName {
		t.Errorf("the Secret is %+v", secret.ObjectMeta)
	}
	before := c.writes
	c.reconcile(g)
	if c.writes != before {
		t.Errorf("%d writes in a reconcile in which nothing was wrong", c.writes-before)
	}
}

// TestReplicasAgree verifies that two replicas that start at the same time end with one
// certificate, in any order.
func TestReplicasAgree(t *testing.T) {
	c := newCluster(t)
	first, second := c.replica(""), c.replica("")
	second.reader = newCluster(t).client // its watch lags
	c.reconcile(first)
	if _, err := second.reconcile(t.Context()); !apierrors.IsAlreadyExists(err) {
		t.Fatalf("want AlreadyExists, got %v", err)
	}
	if second.Ready() == nil {
		t.Error("the second one is ready with nothing")
	}
	second.reader = c.client
	c.reconcile(second)
	if !c.works(first).Equal(c.works(second)) {
		t.Error("they serve different certificates")
	}
	if c.restores[RestoredCertificate] != 1 {
		t.Errorf("%d certificates were made", c.restores[RestoredCertificate])
	}
}

// TestRotation verifies, over three years and in any order of the replicas, that each replica
// always serves a valid and trusted certificate. The next certificate is trusted for a while before
// it is served, and bundles do not grow.
func TestRotation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		replicas := []*Guard{c.replica(""), c.replica("")}
		for _, g := range replicas {
			c.reconcile(g)
		}
		served := map[string]bool{}
		for began := time.Now(); time.Since(began) < 3*certificates.Lifetime; {
			served[c.works(replicas[0]).SerialNumber.String()] = true
			time.Sleep(30 * 24 * time.Hour)
			first := replicas[len(served)%2]
			old := c.works(first)
			if c.reconcile(first) > propagation {
				continue
			}
			// The first replica has created another certificate and waits. The second replica sees
			// it a moment later.
			time.Sleep(time.Second)
			second := replicas[(len(served)+1)%2]
			if again := c.reconcile(second); again != propagation {
				t.Errorf("the second replica waits for %s", again)
			}
			for _, g := range replicas {
				if !c.works(g).Equal(old) {
					t.Error("the new certificate is used at once")
				}
			}
			time.Sleep(propagation - time.Second)
			c.reconcile(first)
			if c.works(first).Equal(old) || !c.works(second).Equal(old) {
				t.Error("the new certificate is not used when its time has come, or used before")
			}
			time.Sleep(time.Second)
			c.reconcile(second)
			if !c.works(first).Equal(c.works(second)) {
				t.Error("the replicas serve different certificates")
			}
			for name, bundle := range c.bundles() {
				if n := strings.Count(string(bundle), "BEGIN"); n != 2 {
					t.Errorf("the bundle of %s has %d CAs", name, n)
				}
			}
		}
		if len(served) != 5 || c.restores[RestoredCertificate] != 5 {
			t.Errorf("%d certificates were served and %d made in three years", len(served), c.restores[RestoredCertificate])
		}
	})
}

// TestReplacedTwice verifies that no replica serves an untrusted certificate if a certificate is
// replaced early, even if a replica sees the change late.
func TestReplacedTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		first, late := c.replica(""), c.replica("")
		c.reconcile(first)
		c.reconcile(late)
		old := c.works(first)
		for range 2 {
			c.renew(certificates.CAKey)
			if again := c.reconcile(first); again != propagation {
				t.Errorf("the new certificate waits for %s", again)
			}
			if !c.works(first).Equal(old) || !c.works(late).Equal(old) {
				t.Error("the new certificate is used at once")
			}
			// OLM rewrites the CRD of the bundle, which has no CA.
			c.inject(newCRD(), nil)
			c.reconcile(first)
			if !c.works(first).Equal(old) || !c.works(late).Equal(old) {
				t.Error("the new certificate is used at once after the CRD was written")
			}
			time.Sleep(propagation / 2)
		}
		time.Sleep(propagation)
		c.reconcile(first)
		if c.works(first).Equal(old) || !c.works(late).Equal(old) {
			t.Error("the new certificate is not used when its time has come, or used before")
		}
	})
}

// TestConflict verifies that the reconcile after a conflict succeeds, because it sees the newer
// object.
func TestConflict(t *testing.T) {
	for name, kind := range map[string]client.Object{
		"CRD":                   &apiextensionsv1.CustomResourceDefinition{},
		"webhook configuration": &admissionregistrationv1.ValidatingWebhookConfiguration{},
		"secret":                &corev1.Secret{},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
				Namespace: "system", Name: "cert", Labels: map[string]string{labelManagedBy: operatorName},
			}})
			g := c.replica("")
			conflicts := 0
			c.refuse = func(object client.Object) error {
				if conflicts > 0 || reflect.TypeOf(object) != reflect.TypeOf(kind) {
					return nil
				}
				conflicts++
				return apierrors.NewConflict(schema.GroupResource{}, object.GetName(), nil)
			}
			if _, err := g.reconcile(t.Context()); !apierrors.IsConflict(err) || conflicts != 1 {
				t.Fatalf("want a conflict, got %v", err)
			}
			c.reconcile(g)
			c.works(g)
		})
	}
}

// TestWithoutAdmission verifies that the guard does not install webhook configurations, and that
// the conversion works without them.
func TestWithoutAdmission(t *testing.T) {
	c := newCluster(t)
	for _, object := range []client.Object{
		&admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: mutatingName}},
		&admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: validatingName}},
	} {
		c.must(c.client.Delete(t.Context(), object))
	}
	g := c.replica("")
	c.reconcile(g)
	c.must(g.Ready())
	if len(c.crd().Spec.Conversion.Webhook.ClientConfig.CABundle) == 0 {
		t.Error("the conversion has no CA")
	}
}

// TestWithoutConversion verifies that the guard of an operator without a conversion restores its
// admission, and does not change a CRD. The next certificate is served only after its CA is
// trusted.
func TestWithoutConversion(t *testing.T) {
	c := newCluster(t)
	g := c.replica("")
	g.options.CRD = ""
	c.reconcile(g)
	c.must(g.Ready())
	before, ca := g.serving.Load(), g.servingCA()
	c.must(c.client.Delete(t.Context(), c.secret()))
	if again := c.reconcile(g); again <= 0 || again > propagation || g.serving.Load() != before {
		t.Errorf("the next certificate is used at once, or after %s", again)
	}
	for path, bundle := range c.bundles() {
		if want := path != "convert"; trusts(bundle, ca) != want || trusts(bundle, c.secret().Data[certificates.CAKey]) != want {
			t.Errorf("%s trusts both CAs: want %t", path, want)
		}
	}
}

// TestFight verifies that a client that reverts every write does not cause endless writes.
func TestFight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		g := c.replica("")
		c.reconcile(g)
		undone, began := 0, time.Now()
		for time.Since(began) < time.Minute {
			c.inject(newCRD(), nil)
			undone++
			_, _ = g.reconcile(t.Context())
			time.Sleep(200 * time.Millisecond)
		}
		if n := c.restores[RestoredConversion]; n < 60 || n > 60+writesAtOnce {
			t.Errorf("%d restores in a minute, undone %d times", n, undone)
		}
		time.Sleep(2 * time.Second)
		c.reconcile(g)
		c.works(g)
	})
}

// TestCertManager verifies that the guard does not renew a Secret that cert-manager writes, even if
// the operator created it.
func TestCertManager(t *testing.T) {
	t.Run("made", func(t *testing.T) {
		c := newCluster(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "system", Name: "cert"}})
		g := c.replica("")
		if _, err := g.reconcile(t.Context()); err == nil || !strings.Contains(err.Error(), "waiting for tls.crt") {
			t.Errorf("want that it waits, got %v", err)
		}
		issue(c, 24*time.Hour)
		c.reconcile(g)
		c.works(g)
	})
	t.Run("taken over", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := newCluster(t)
			g := c.replica("")
			c.reconcile(g)
			issue(c, 24*time.Hour)
			issued := c.secret().Data[corev1.TLSCertKey]
			time.Sleep(c.reconcile(g))
			c.reconcile(g)
			c.works(g)
			time.Sleep(20 * time.Hour)
			if again := c.reconcile(g); again != renewalOfOthers {
				t.Errorf("it looks again after %s at what it cannot renew", again)
			}
			if diff := cmp.Diff(string(issued), string(c.secret().Data[corev1.TLSCertKey])); diff != "" {
				t.Errorf("the operator wrote over what cert-manager issued:\n%s", diff)
			}
		})
	})
}

// issue writes a certificate to the Secret like cert-manager.
func issue(c *cluster, lifetime time.Duration) {
	c.t.Helper()
	secret := c.secret()
	data, err := certificates.New(service.hosts(), lifetime)
	c.must(err)
	secret.Annotations = map[string]string{issuedByAnnotation: "nginx-operator-serving-cert"}
	secret.Data = data
	c.must(c.client.Update(c.t.Context(), secret))
}
