package metrics

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// TestWebhookCertificate verifies that the gauge follows the serving certificate, and has no value
// while no certificate exists.
func TestWebhookCertificate(t *testing.T) {
	registry := prometheus.NewRegistry()
	var serving *tls.Certificate
	NewWebhookCertificate(registry, func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		if serving == nil {
			return nil, errors.New("none yet")
		}
		return serving, nil
	})
	if count, err := testutil.GatherAndCount(registry); err != nil || count != 0 {
		t.Errorf("%d values, %v", count, err)
	}
	serving = &tls.Certificate{Leaf: &x509.Certificate{NotAfter: time.Unix(1_800_000_000, 0)}}
	want := `
# HELP nginx_operator_webhook_certificate_expiry_seconds Expiry of the certificate of this replica's webhooks, in seconds since 1970.
# TYPE nginx_operator_webhook_certificate_expiry_seconds gauge
nginx_operator_webhook_certificate_expiry_seconds 1.8e+09
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}
