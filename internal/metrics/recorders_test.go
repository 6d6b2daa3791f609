package metrics

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// TestCountersBeginAtZero verifies that the counters of the guard and the conversion exist from the
// start. Otherwise a rate would miss the first increment.
func TestCountersBeginAtZero(t *testing.T) {
	registry := prometheus.NewRegistry()
	restored := NewRestores(registry, "owner", "webhooks")
	failed := NewConversionFailures(registry)
	text := func(owner, webhooks, failures string) string {
		return `
# HELP nginx_operator_conversion_failures_total Conversion reviews answered with a failure. ` +
			`Every Pod that reaches the webhook can raise it, so do not alert on it.
# TYPE nginx_operator_conversion_failures_total counter
nginx_operator_conversion_failures_total ` + failures + `
# HELP nginx_operator_guard_repairs_total Repairs of the CRD, the webhook configurations, or the certificate, ` +
			`by kind (conversion, webhooks, owner, certificate).
# TYPE nginx_operator_guard_repairs_total counter
nginx_operator_guard_repairs_total{what="owner"} ` + owner + `
nginx_operator_guard_repairs_total{what="webhooks"} ` + webhooks + "\n"
	}
	if err := testutil.GatherAndCompare(registry, strings.NewReader(text("0", "0", "0"))); err != nil {
		t.Error(err)
	}
	restored("owner")
	failed()
	if err := testutil.GatherAndCompare(registry, strings.NewReader(text("1", "0", "1"))); err != nil {
		t.Error(err)
	}
}

// TestFleet verifies that each state has a value from the start, and that new values replace the
// earlier ones.
func TestFleet(t *testing.T) {
	registry := prometheus.NewRegistry()
	set := NewFleet(registry)
	for i, want := range [][4]int{{}, {7, 2, 3, 1}, {}} {
		if i > 0 {
			set(want[0], want[1], want[2], want[3])
		}
		var text strings.Builder
		for i, state := range []string{"waiting", "rolling", "overdue", "failed"} {
			fmt.Fprintf(&text, "nginx_operator_fleet_rollout_instances{state=%q} %d\n", state, want[i])
		}
		header := "# HELP nginx_operator_fleet_rollout_instances Instances that this release changes: waiting for a rollout slot (waiting), " +
			"with a slot (rolling), without a slot because they rolled for too long (overdue), and with a failed rollout (failed). " +
			"Only the leader reports values above 0.\n# TYPE nginx_operator_fleet_rollout_instances gauge\n"
		if err := testutil.GatherAndCompare(registry, strings.NewReader(header+text.String())); err != nil {
			t.Error(err)
		}
	}
}

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
