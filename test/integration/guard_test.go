package integration

// This file tests the protection of the conversion. The API server calls the operators that these
// tests start, with their real certificates, while a client reads a version that has to be
// converted.

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/cert"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/pkg/certificates"
	"github.com/example/nginx-operator/test/harness"
)

const (
	ownSecret         = "nginx-operator-webhook-server-cert"
	conversionWebhook = "conversion.nginxoperators.operator.example.com"
)

// crd reads the CustomResourceDefinition.
func crd(t *testing.T) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}}
	must(t, suite.admin.Get(t.Context(), client.ObjectKey{Name: "nginxoperators.operator.example.com"}, object))
	return object
}

// trustedCAs returns the CAs that the API server trusts for the conversion. The pool is empty
// without a conversion webhook.
func trustedCAs(t *testing.T) *x509.CertPool {
	t.Helper()
	raw, _, err := unstructured.NestedString(crd(t).Object, "spec", "conversion", "webhook", "clientConfig", "caBundle")
	must(t, err)
	var bundle []byte
	must(t, json.Unmarshal([]byte(`"`+raw+`"`), &bundle))
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(bundle)
	return pool
}

// served returns the certificate that an operator presents.
func served(t *testing.T, p *harness.Manager) *x509.Certificate {
	t.Helper()
	connection := must1(tls.Dial("tcp", p.Webhooks, &tls.Config{InsecureSkipVerify: true}))(t) //nolint:gosec // it is what is looked at
	defer func() { _ = connection.Close() }()
	return connection.ConnectionState().PeerCertificates[0]
}

// webhookHosts returns the names that a certificate must contain in these tests.
func webhookHosts(t *testing.T) []string {
	t.Helper()
	address := must1(url.Parse(suite.service.URL()))(t)
	service := "nginx-operator-webhook-service." + operatorNamespace
	return []string{service + ".svc", service + ".svc.cluster.local", address.Hostname()}
}

func getSecret(t *testing.T, name string) *corev1.Secret {
	t.Helper()
	secret := &corev1.Secret{}
	must(t, suite.admin.Get(t.Context(), client.ObjectKey{Namespace: operatorNamespace, Name: name}, secret))
	return secret
}

// serves returns an error unless an operator presents the certificate of a Secret's data, and the
// API server trusts it.
func serves(t *testing.T, p *harness.Manager, data map[string][]byte) error {
	t.Helper()
	want := must1(certificates.Load(data))(t)
	leaf := served(t, p)
	if !leaf.Equal(want.Leaf) {
		return fmt.Errorf("%s serves number %s, want %s", p.Webhooks, leaf.SerialNumber, want.Leaf.SerialNumber)
	}
	_, err := leaf.Verify(x509.VerifyOptions{Roots: trustedCAs(t), DNSName: webhookHosts(t)[0]})
	return err
}

// withoutConversion are the patches that disable the conversion.
var withoutConversion = map[string]string{
	"none":  `{"spec":{"conversion":{"strategy":"None","webhook":null}}}`,
	"no CA": `{"spec":{"conversion":{"webhook":{"clientConfig":{"caBundle":null}}}}}`,
}

// TestConversionCannotBeTakenAway verifies that a write of the CRD without the conversion, like
// OLM's in each upgrade, is stored with the working conversion. No read fails or is wrong at any
// time.
func TestConversionCannotBeTakenAway(t *testing.T) {
	waitForAdmission(t)
	reads := startReader(t)
	for name, patch := range withoutConversion {
		for range 5 {
			written := crd(t)
			must(t, suite.admin.Patch(t.Context(), written, client.RawPatch(types.MergePatchType, []byte(patch))))
			if bundle, _, _ := unstructured.NestedString(written.Object, "spec", "conversion", "webhook", "clientConfig", "caBundle"); bundle == "" {
				t.Errorf("%s: the conversion was stored as %v", name, written.Object["spec"].(map[string]any)["conversion"])
			}
		}
	}
	reads.finish(t)
}

// waitForAdmission makes the API server wait longer for the webhook that restores the conversion,
// until the test ends. On a busy machine the webhook may need more than its 2 seconds.
func waitForAdmission(t *testing.T) {
	t.Helper()
	change := func(seconds int32) {
		changeWebhook(t, conversionWebhook, func(webhook *admissionregistrationv1.MutatingWebhook) { webhook.TimeoutSeconds = ptr.To(seconds) })
	}
	change(30)
	t.Cleanup(func() { change(2) })
}

// withoutAdmission disables the webhook that restores the conversion in writes of the CRD, until
// the test ends. If the API server fails to call the webhook, the guard restores the conversion
// after the write.
func withoutAdmission(t *testing.T) {
	t.Helper()
	change := func(operations ...admissionregistrationv1.OperationType) {
		changeWebhook(t, conversionWebhook, func(webhook *admissionregistrationv1.MutatingWebhook) {
			webhook.Rules[0].Operations = operations
		})
	}
	change(admissionregistrationv1.Delete)
	t.Cleanup(func() { change(admissionregistrationv1.Create, admissionregistrationv1.Update) })
}

// changeWebhook changes a mutating webhook of the operator, also in a cleanup.
func changeWebhook(t *testing.T, name string, change func(*admissionregistrationv1.MutatingWebhook)) {
	t.Helper()
	ctx, configuration := context.WithoutCancel(t.Context()), &admissionregistrationv1.MutatingWebhookConfiguration{}
	must(t, harness.RetryOnConflict(func() error {
		err := suite.admin.Get(ctx, client.ObjectKey{Name: "nginx-operator-mutating-webhook-configuration"}, configuration)
		if err != nil {
			return err
		}
		for i := range configuration.Webhooks {
			if configuration.Webhooks[i].Name == name {
				change(&configuration.Webhooks[i])
				return suite.admin.Update(ctx, configuration)
			}
		}
		return errors.New("there is no such webhook")
	}))
}

// TestConversionComesBack verifies that the operator restores the conversion at once if an
// administrator disables it, in each way, while the webhook cannot prevent it. Clients get wrong
// answers only until then. Reads may fail in the meantime, because the API server has no
// conversion.
func TestConversionComesBack(t *testing.T) {
	withoutAdmission(t)
	for name, patch := range withoutConversion {
		t.Run(name, func(t *testing.T) {
			reads := startReader(t)
			var restores, wrongs, writes []time.Duration
			for range 5 {
				reads.goOn(t)
				began := time.Now()
				took, write := awaitRestore(t, patch)
				reads.goOn(t)
				wrong := reads.wrongSince(began)
				t.Logf("back after %s, answers were wrong for %s; the write that took the conversion away needed %s",
					took.Round(time.Millisecond), wrong.Round(time.Millisecond), write.Round(time.Millisecond))
				restores, wrongs, writes = append(restores, took), append(wrongs, wrong), append(writes, write)
			}
			// The API server spends most of the time on a write of the same kind, and single writes
			// are slow on a busy machine.
			if limit := max(time.Second, 8*median(writes)); median(restores) > limit || median(wrongs) > limit {
				t.Errorf("want %s at most", limit)
			}
			must(t, serves(t, suite.operator, getSecret(t, ownSecret).Data))
			reads.stop(t)
		})
	}
}

func median(durations []time.Duration) time.Duration {
	slices.Sort(durations)
	return durations[len(durations)/2]
}

// awaitRestore patches the CustomResourceDefinition. It returns the time from the watch event with
// the broken conversion to the event with the restored one, and the duration of the patch.
func awaitRestore(t *testing.T, patch string) (restore, write time.Duration) {
	t.Helper()
	watching := must1(client.NewWithWatch(suite.config, client.Options{}))(t)
	list := &unstructured.UnstructuredList{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinitionList",
	}}
	events := must1(watching.Watch(t.Context(), list, client.MatchingFields{"metadata.name": "nginxoperators.operator.example.com"}))(t)
	defer events.Stop()
	object, patched := crd(t), make(chan error, 1)
	go func() {
		began := time.Now()
		err := suite.admin.Patch(t.Context(), object, client.RawPatch(types.MergePatchType, []byte(patch)))
		write = time.Since(began)
		patched <- err
	}()
	var broken time.Time
	for deadline := time.After(patience); ; {
		select {
		case event := <-events.ResultChan():
			written := event.Object.(*unstructured.Unstructured).Object
			bundle, _, _ := unstructured.NestedString(written, "spec", "conversion", "webhook", "clientConfig", "caBundle")
			if bundle == "" && broken.IsZero() {
				broken = time.Now()
			}
			if bundle != "" && !broken.IsZero() {
				restore = time.Since(broken)
				must(t, <-patched)
				return restore, write
			}
		case <-deadline:
			t.Fatal("the conversion is not taken away, or does not come back")
		}
	}
}

// TestCertificateIsFollowedAndRenewed verifies that both replicas use a new certificate that a user
// writes into the Secret, and that the operator renews a certificate that expires soon. This needs
// no restart, and no read fails.
func TestCertificateIsFollowedAndRenewed(t *testing.T) {
	standby := must1(startOperator())(t)
	defer standby.Kill()
	reads := startReader(t)
	secret := getSecret(t, ownSecret)
	replace := func(lifetime time.Duration) map[string][]byte {
		t.Helper()
		given := must1(certificates.New(webhookHosts(t), lifetime))(t)
		update(t, secret, func(s *corev1.Secret) { s.Data = given })
		return given
	}
	followed := func(data map[string][]byte) {
		t.Helper()
		for _, p := range []*harness.Manager{suite.operator, standby} {
			waitFor(t, func() error { return serves(t, p, data) })
		}
	}
	began := time.Now()
	followed(replace(certificates.Lifetime))
	t.Logf("the new certificate was served after %s", time.Since(began).Round(time.Millisecond))

	// A certificate is valid from an hour before its creation, and is renewed after two thirds of
	// its lifetime. On a slow machine, the operator may renew this one before every replica serves
	// it.
	const due = 10 * time.Second
	began = time.Now()
	given := replace((time.Hour + due) * 3 / 2)
	waitFor(t, func() error {
		secret = getSecret(t, ownSecret)
		if string(secret.Data[corev1.TLSCertKey]) == string(given[corev1.TLSCertKey]) {
			return fmt.Errorf("nobody renews it")
		}
		return nil
	})
	if at := time.Since(began); at < due-2*time.Second {
		t.Errorf("it was renewed after %s already, it was due after %s", at, due)
	}
	followed(secret.Data)
	t.Logf("the certificate was renewed and served after %s, due after %s", time.Since(began).Round(time.Millisecond), due)
	if left := time.Until(must1(certificates.Load(secret.Data))(t).Leaf.NotAfter); left < certificates.Lifetime*9/10 {
		t.Errorf("the next one ends in %s", left)
	}
	reads.finish(t)
}

// TestOutdatedCertificateIsReplaced verifies that the operator serves an RSA certificate of an
// earlier release when it starts, and then replaces it in all replicas. No read fails.
func TestOutdatedCertificateIsReplaced(t *testing.T) {
	suite.operator.Stop()
	hosts := webhookHosts(t)
	address := net.ParseIP(hosts[2])
	chain, key, err := cert.GenerateSelfSignedCertKeyWithOptions(cert.SelfSignedCertKeyOptions{
		Host: hosts[0], AlternateDNS: hosts[1:2], AlternateIPs: []net.IP{address}, MaxAge: certificates.Lifetime,
	})
	must(t, err)
	ca := must1(cert.EncodeCertificates(must1(cert.ParseCertsPEM(chain))(t)[1]))(t)
	outdated := map[string][]byte{corev1.TLSCertKey: chain, corev1.TLSPrivateKeyKey: key, certificates.CAKey: ca}
	update(t, getSecret(t, ownSecret), func(s *corev1.Secret) { s.Data = outdated })

	suite.operator = must1(startOperator())(t)
	reads := startReader(t)
	standby := must1(startOperator())(t)
	defer standby.Kill()
	for _, p := range []*harness.Manager{suite.operator, standby} {
		waitFor(t, func() error {
			if err := certificates.Outdated(served(t, p)); err != nil {
				return err
			}
			return serves(t, p, getSecret(t, ownSecret).Data)
		})
	}
	reads.finish(t)
	if reason := "not ECDSA on P-256"; strings.Count(suite.operator.Log()+standby.Log(), reason) != 1 {
		t.Errorf("the replicas did not replace the certificate once because it is %s", reason)
	}
}

// TestReplicasAgreeOnACertificate verifies that replicas that start at the same time without a
// certificate create only one.
func TestReplicasAgreeOnACertificate(t *testing.T) {
	suite.operator.Stop()
	must(t, suite.admin.Delete(t.Context(), getSecret(t, ownSecret)))
	const replicas = 3
	started, errs := make([]*harness.Manager, replicas), make([]error, replicas)
	var starts sync.WaitGroup
	for i := range replicas {
		starts.Go(func() { started[i], errs[i] = startOperator() })
	}
	starts.Wait()
	must(t, errors.Join(errs...))
	suite.operator = started[0]
	reads := startReader(t)
	data, made := getSecret(t, ownSecret).Data, 0
	for _, p := range started {
		must(t, serves(t, p, data))
		made += strings.Count(p.Log(), "Created the certificate of the webhooks")
	}
	if made != 1 {
		t.Errorf("%d certificates were made", made)
	}
	reads.goOn(t)
	// A stopped replica still answers for some seconds.
	var stops sync.WaitGroup
	for _, p := range started[1:] {
		stops.Go(p.Stop)
	}
	stops.Wait()
	reads.finish(t)
}
