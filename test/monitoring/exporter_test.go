package monitoring

import (
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"testing"

	"github.com/nginx/nginx-prometheus-exporter/client"
	"github.com/nginx/nginx-prometheus-exporter/collector"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/example/nginx-operator/test/harness"
)

// ofRequests has the names and types of the metrics of the receiver of request metrics, whose program
// is a module of its own. The end-to-end tests verify that it serves them.
var ofRequests = map[string]string{
	"nginx_server_requests_total":                   "COUNTER",
	"nginx_server_request_duration_seconds_bucket":  "COUNTER",
	"nginx_server_upstream_duration_seconds_bucket": "COUNTER",
	"nginx_server_sent_bytes_total":                 "COUNTER",
	"nginx_server_received_bytes_total":             "COUNTER",
	"nginx_request_metrics_invalid_messages_total":  "COUNTER",
	"nginx_request_metrics_lost_messages_total":     "COUNTER",
}

// exported returns the names and types of the metrics that the exporter serves for nginx's status
// page, and those of the receiver of request metrics.
func exported(t *testing.T) map[string]string {
	t.Helper()
	// This is the example of https://nginx.org/en/docs/http/ngx_http_stub_status_module.html.
	const page = "Active connections: 291 \n" + "server accepts handled requests\n 16630948 16630948 31070465 \n" +
		"Reading: 6 Writing: 179 Waiting: 106 \n"
	nginx := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, page) }))
	defer nginx.Close()
	registry := prometheus.NewRegistry()
	// The exporter's program uses this namespace for nginx metrics.
	exporter := collector.NewNginxCollector(client.NewNginxClient(nginx.Client(), nginx.URL), "nginx", nil, slog.New(slog.DiscardHandler))
	harness.Must(t, registry.Register(exporter))
	types := maps.Clone(ofRequests)
	for _, family := range harness.Must1(registry.Gather())(t) {
		types[family.GetName()] = family.GetType().String()
	}
	return types
}

var rated = regexp.MustCompile(`(?:rate|increase)\((\w+)\{`)

// TestMetricsOfInstancesAreExported checks that the panels use only metrics that the exporter
// serves, that they compute rates only of counters, and that they show every metric.
func TestMetricsOfInstancesAreExported(t *testing.T) {
	var queries []string
	for _, panel := range harness.Must1(ReadInstancesDashboard(repository))(t).Panels {
		queries = append(queries, panel.Queries()...)
	}
	types, seen := exported(t), map[string]bool{}
	for _, query := range queries {
		for _, selector := range Selectors(query) {
			if selector.OfOperator() {
				continue
			}
			seen[selector.Metric] = true
			if _, found := types[selector.Metric]; !found {
				t.Errorf("the exporter serves no %s", selector.Metric)
			}
		}
		for _, counter := range rated.FindAllStringSubmatch(query, -1) {
			if name := counter[1]; seen[name] && types[name] != "COUNTER" {
				t.Errorf("%s is no counter, but %s", name, types[name])
			}
		}
	}
	for name := range types {
		if !seen[name] {
			t.Errorf("no panel shows %s", name)
		}
	}
}
