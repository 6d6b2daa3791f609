package integration

import (
	"fmt"
	"strings"
	"testing"

	"github.com/example/nginx-operator/test/monitoring"
)

// Every metric that an alert or a panel looks at is one that the operator serves, if not nginx. Prometheus adds `up`.
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
