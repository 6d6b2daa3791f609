package e2e

// The certificate of the operator's webhooks under OLM, while clients read at the version that
// needs the conversion, and write at both.
//
//   - If OLM renews the certificate, no read or write fails, and none is wrong.
//   - If a client removes the conversion from the CustomResourceDefinition, admission retains it or
//     the guard restores it at once.

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// certificateSecret is the Secret to which OLM or cert-manager writes the webhook certificate.
const certificateSecret = operatorName + "-service-cert"

func testWebhookCertificate(t *testing.T) {
	operator := suite.operatorNamespace
	namespace := newNamespace(t, restricted)
	ports := map[string]int32{}
	for i := range int32(10) {
		name := fmt.Sprintf("object-%d", i)
		must(t, suite.admin.Create(t.Context(), newV1alpha1(namespace, name, 10000+i, 0)))
		ports[name] = 10000 + i
	}
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: operator, Name: certificateSecret}
	must(t, suite.admin.Get(t.Context(), key, secret))
	before := string(secret.Data[corev1.TLSCertKey])

	reader := startReader(t, namespace, older, ports)
	reader.strictly()
	writers := []*background{startWriter(t, namespace, older), startWriter(t, namespace, newer)}
	// OLM renews a certificate that expires within a day, so the test stores one.
	service := operatorName + "-service." + operator + ".svc"
	chain, private, err := cert.GenerateSelfSignedCertKeyWithOptions(cert.SelfSignedCertKeyOptions{
		Host: service, AlternateDNS: []string{service + ".cluster.local"}, MaxAge: 12 * time.Hour,
	})
	must(t, err)
	parts, err := cert.ParseCertsPEM(chain)
	must(t, err)
	ca, err := cert.EncodeCertificates(parts[1])
	must(t, err)
	short := map[string][]byte{corev1.TLSCertKey: chain, corev1.TLSPrivateKeyKey: private, "olmCAKey": ca}
	update(t, secret, func(s *corev1.Secret) { s.Data = short })
	took := waitForOLM(t, operator, "OLM to renew the certificate", func(ctx context.Context) error {
		if err := suite.admin.Get(ctx, key, secret); err != nil {
			return err
		}
		if now := string(secret.Data[corev1.TLSCertKey]); now == before || now == string(chain) {
			return errors.New("it is still the same")
		}
		return nil
	})
	t.Logf("FIGURE OLM renewed the certificate after %s", seconds(took))
	waitForOLM(t, operator, "OLM to say that the operator is installed", func(ctx context.Context) error {
		return installed(ctx, operator, suite.version)
	})
	reader.goOn(t)
	const during = "while OLM renews the certificate of the webhooks"
	reader.finish(t, during)
	for _, writer := range writers {
		writer.finish(t, during, 10)
	}

	testConversionComesBack(t)
}

func testConversionComesBack(t *testing.T) {
	removed := []byte(`{"spec":{"conversion":{"strategy":"None","webhook":null}}}`)
	must(t, suite.admin.Patch(t.Context(), operatorCRD(), client.RawPatch(types.MergePatchType, removed)))
	took := waitFor(t, suite.operatorNamespace, "the conversion to be back", restoreLimit, func(ctx context.Context) error {
		crd, err := readCRD(ctx)
		if err != nil {
			return err
		}
		if conversion := crd.Spec.Conversion; conversion.Webhook == nil || len(conversion.Webhook.ClientConfig.CABundle) == 0 {
			return fmt.Errorf("it is %+v", conversion)
		}
		return nil
	})
	t.Logf("FIGURE the conversion is back in the CustomResourceDefinition after %d ms", took.Milliseconds())
}
