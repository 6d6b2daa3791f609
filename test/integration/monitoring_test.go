package integration

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/internal/webhook"
	"github.com/example/nginx-operator/test/harness"
	"github.com/example/nginx-operator/test/monitoring"
)

// TestMonitoredMetricsAreServed verifies that the operator serves each operator metric that an
// alert or a panel uses. Prometheus itself adds `up`.
func TestMonitoredMetricsAreServed(t *testing.T) {
	create(t, newObject(newNamespace(t), "monitored"))
	var queries []string
	for _, alert := range monitoring.Alerts(must1(monitoring.Rules("../.."))(t)) {
		queries = append(queries, alert.Expr.StrVal)
	}
	for _, read := range []func(string) (*monitoring.Dashboard, error){monitoring.ReadDashboard, monitoring.ReadInstancesDashboard} {
		for _, panel := range must1(read("../.."))(t).Panels {
			queries = append(queries, panel.Queries()...)
		}
	}
	waitFor(t, func() error {
		served := scrape(t)
		for _, query := range queries {
			for _, selector := range monitoring.Selectors(query) {
				if selector.OfOperator() && selector.Metric != "up" && !strings.Contains(served, "# TYPE "+selector.Series()+" ") {
					return fmt.Errorf("nobody serves %s", selector.Metric)
				}
			}
		}
		return nil
	})
}

// apiServerMetrics returns the API server's metrics.
func apiServerMetrics(t *testing.T) string {
	t.Helper()
	api := must1(discovery.NewDiscoveryClientForConfig(suite.config))(t)
	return string(must1(api.RESTClient().Get().AbsPath("/metrics").DoRaw(t.Context()))(t))
}

// sum adds the values of a metric's samples that have these labels, or returns 0 if it finds none.
func sum(metrics, name string, labels map[string]string) float64 {
	samples, err := harness.Samples(metrics, name)
	if err != nil {
		return 0
	}
	total := 0.0
	for _, sample := range samples {
		matches := true
		for label, value := range labels {
			matches = matches && sample.Labels[label] == value
		}
		if matches {
			total += sample.Value
		}
	}
	return total
}

// TestMetricsBehindAlertsOnWebhooks verifies that the API server serves the metrics that the
// webhook alerts use. They grow while the webhooks are down. Requests that other clients post to
// the webhooks do not change them, although the operator counts these requests.
func TestMetricsBehindAlertsOnWebhooks(t *testing.T) {
	namespace, _, _ := newWeb(t, nil)
	type figures struct{ open, conversions float64 }
	read := func() figures {
		t.Helper()
		api := apiServerMetrics(t)
		out := figures{
			open: sum(api, "apiserver_admission_webhook_fail_open_count", map[string]string{"name": "validate.nginxoperators.operator.example.com"}),
			conversions: sum(api, "apiserver_crd_conversion_webhook_duration_seconds_count",
				map[string]string{"crd_name": "nginxoperators.operator.example.com", "succeeded": "false"}),
		}
		return out
	}

	before, counted := read(), sum(scrape(t), "nginx_operator_conversion_failures_total", nil)
	const review = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","request":{"uid":"a","desiredAPIVersion":"a/v1",` +
		`"objects":[{"apiVersion":"operator.example.com/v1alpha1","kind":"NginxOperator","spec":[]}]}}`
	for _, path := range []string{"/convert", webhook.PathValidate, webhook.PathDefault, webhook.PathV1alpha1} {
		post(t, path, review)
	}
	after := read()
	if now := sum(scrape(t), "nginx_operator_conversion_failures_total", nil); now <= counted {
		t.Errorf("the operator counts %v failed conversions, and %v before: the stranger did nothing", now, counted)
	}
	if after.open != before.open || after.conversions != before.conversions {
		t.Errorf("a stranger changed the metrics of the API server: %+v, before %+v", after, before)
	}

	suite.operator.Stop()
	defer startNextOperator(t)
	create(t, newInstance(namespace, "unasked"))
	unasked := newObject(namespace, "unasked")
	if err := suite.admin.Get(t.Context(), client.ObjectKeyFromObject(unasked), unasked); err == nil {
		t.Error("an object is read at v1alpha1 though nobody converts it")
	}
	api := apiServerMetrics(t)
	for _, alert := range monitoring.Alerts(must1(monitoring.Rules("../.."))(t)) {
		for _, selector := range monitoring.Selectors(alert.Expr.StrVal) {
			exists := !strings.HasSuffix(selector.Metric, "rejection_count") // exists only after a call fails with failurePolicy Fail
			if selector.OfAPIServer() && exists && !strings.Contains(api, selector.Metric+"{") {
				t.Errorf("%s: the API server has no %s", alert.Alert, selector.Metric)
			}
		}
	}
	if away := read(); away.open <= after.open || away.conversions <= after.conversions {
		t.Errorf("while the webhooks are away: %+v, before: %+v", away, after)
	}
}
