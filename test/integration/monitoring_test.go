package integration

import (
	"fmt"
	"strings"
	"testing"

	"github.com/example/nginx-operator/test/monitoring"
)

// Every metric that an alert or a panel of the dashboard looks at is one that the operator serves. Prometheus adds `up`.
func TestMonitoredMetricsAreServed(t *testing.T) {
	create(t, newObject(newNamespace(t), "monitored"))
	var queries []string
	for _, alert := range monitoring.Alerts(must1(monitoring.Rules("../.."))(t)) {
		queries = append(queries, alert.Expr.StrVal)
	}
	for _, panel := range must1(monitoring.ReadDashboard("../.."))(t).Panels {
		queries = append(queries, panel.Queries()...)
	}
	waitFor(t, func() error {
		served := scrape(t)
		for _, query := range queries {
			for _, selector := range monitoring.Selectors(query) {
				if selector.Metric != "up" && !strings.Contains(served, "# TYPE "+selector.Series()+" ") {
					return fmt.Errorf("nobody serves %s", selector.Metric)
				}
			}
		}
		return nil
	})
}
