package monitoring

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/example/nginx-operator/test/harness"
)

// dashboards are the dashboards of config/monitoring, with their variables and numbers of panels.
var dashboards = map[string]struct {
	read      func(repository string) (*Dashboard, error)
	variables []string
	// least and most bound the number of panels without rows.
	least, most int
	// file is the key in the ConfigMap. source is the file in config/monitoring.
	file, source string
}{
	"operator": {ReadDashboard, []string{"datasource"}, 10, 30, "nginx-operator.json", "dashboard.json"},
	"instances": {
		ReadInstancesDashboard,
		[]string{"datasource", "namespace", "instance"},
		6, 16, "nginx-operator-instances.json", "dashboard-instances.json",
	},
}

// TestDashboards checks that Grafana can display the dashboards: IDs are unique, and each panel has
// a description and a data source.
func TestDashboards(t *testing.T) {
	uids := map[string]bool{}
	for name, want := range dashboards {
		dashboard := harness.Must1(want.read(repository))(t)
		if dashboard.UID == "" || uids[dashboard.UID] || dashboard.Title == "" {
			t.Errorf("%s has the identity %q and the title %q", name, dashboard.UID, dashboard.Title)
		}
		uids[dashboard.UID] = true
		requireVariables(t, dashboard, want.variables)
		ids, titles, shown := map[int]bool{}, map[string]bool{}, 0
		for _, panel := range dashboard.Panels {
			if panel.ID == 0 || ids[panel.ID] || panel.Title == "" || titles[panel.Title] {
				t.Errorf("panel %d, %q: the id or the title is missing or there twice", panel.ID, panel.Title)
			}
			ids[panel.ID], titles[panel.Title] = true, true
			if panel.Type != "row" {
				shown++
				requireQueries(t, &panel, "${"+want.variables[0]+"}")
			}
		}
		if shown < want.least || shown > want.most {
			t.Errorf("%s has %d panels", name, shown)
		}
	}
}

// requireVariables requires variables with these names. The first is the data source. The values of
// the others come from series with the label of an instance, so that other nginx exporters are
// excluded.
func requireVariables(t *testing.T, dashboard *Dashboard, want []string) {
	t.Helper()
	var names []string
	for i, variable := range dashboard.Templating.List {
		names = append(names, variable.Name)
		switch {
		case i == 0 && variable.Type != "datasource", i > 0 && (variable.Type != "query" || variable.AllValue != All):
			t.Errorf("%s has the variable %+v", dashboard.Title, variable)
		case i > 0 && !strings.HasPrefix(variable.Definition, "label_values(nginx_up{"):
			t.Errorf("the values of %s are %s", variable.Name, variable.Definition)
		}
	}
	if !slices.Equal(names, want) {
		t.Errorf("%s has the variables %q, want %q", dashboard.Title, names, want)
	}
}

// requireQueries requires a panel to have a description, a unit, the data source, and queries with
// unique IDs and a legend.
func requireQueries(t *testing.T, panel *Panel, source string) {
	t.Helper()
	unit := panel.FieldConfig.Defaults.Unit
	if panel.Description == "" || unit == "" || len(panel.Targets) == 0 || panel.Datasource.UID != source {
		t.Errorf("%s has the description %q, the unit %q, %d queries and the data source %s",
			panel.Title, panel.Description, unit, len(panel.Targets), panel.Datasource.UID)
	}
	references := map[string]bool{}
	for _, target := range panel.Targets {
		if target.RefID == "" || references[target.RefID] || target.Expr == "" || target.LegendFormat == "" {
			t.Errorf("%s has the query %+v", panel.Title, target)
		}
		references[target.RefID] = true
	}
}

// TestEveryAlertHasAPanel checks that each alert has a panel that links to its runbook and shows
// every metric of the alert.
func TestEveryAlertHasAPanel(t *testing.T) {
	var all []monitoringv1.Rule
	for set, dashboard := range map[string]string{"operator": "operator", "instance": "instances"} {
		alerts := Alerts(harness.Must1(alertSets[set].rules())(t))
		for _, alert := range alerts {
			requirePanel(t, harness.Must1(dashboards[dashboard].read(repository))(t), alert)
		}
		all = append(all, alerts...)
	}
	for _, dashboard := range dashboards {
		requireRunbooks(t, harness.Must1(dashboard.read(repository))(t), all)
	}
}

// requirePanel requires a panel that links to an alert's runbook and shows the metrics of the
// alert.
func requirePanel(t *testing.T, dashboard *Dashboard, alert monitoringv1.Rule) {
	t.Helper()
	at := slices.IndexFunc(dashboard.Panels, func(panel Panel) bool {
		return slices.ContainsFunc(panel.Links, func(link Link) bool {
			return link.Title == "Runbook: "+alert.Alert && link.URL == alert.Annotations["runbook_url"]
		})
	})
	if at < 0 {
		t.Errorf("no panel links to the runbook of %s", alert.Alert)
		return
	}
	shown := map[string]bool{}
	for _, target := range dashboard.Panels[at].Targets {
		for _, selector := range Selectors(target.Expr) {
			shown[selector.Metric] = true
		}
	}
	for _, selector := range Selectors(alert.Expr.StrVal) {
		if !shown[selector.Metric] {
			t.Errorf("panel %q does not show %s, on which %s depends", dashboard.Panels[at].Title, selector.Metric, alert.Alert)
		}
	}
}

// requireRunbooks requires each link of a dashboard to lead to the runbook of the alert in its
// title.
func requireRunbooks(t *testing.T, dashboard *Dashboard, alerts []monitoringv1.Rule) {
	t.Helper()
	for _, panel := range dashboard.Panels {
		for _, link := range panel.Links {
			if !slices.ContainsFunc(alerts, func(alert monitoringv1.Rule) bool {
				return link.Title == "Runbook: "+alert.Alert && link.URL == alert.Annotations["runbook_url"]
			}) {
				t.Errorf("panel %q of %s links to %s, the runbook of no alert", panel.Title, dashboard.Title, link.URL)
			}
		}
	}
}

// TestDashboardsAreAConfigMap checks that the component puts the complete dashboards into a
// ConfigMap that Grafana's sidecar finds.
func TestDashboardsAreAConfigMap(t *testing.T) {
	configMaps := decode[corev1.ConfigMap](t, manifests(t, "monitoring")["ConfigMap"])
	configMap := one(t, configMaps, func(c *corev1.ConfigMap) bool { return c.Labels["grafana_dashboard"] == "1" })
	for name, dashboard := range dashboards {
		file := harness.Must1(os.ReadFile(filepath.Join(repository, "config/monitoring", dashboard.source)))(t)
		var want, got any
		harness.Must(t, json.Unmarshal(file, &want))
		harness.Must(t, yaml.Unmarshal([]byte(configMap.Data[dashboard.file]), &got))
		if text := harness.Must1(json.Marshal(want))(t); string(text) != string(harness.Must1(json.Marshal(got))(t)) {
			t.Errorf("the dashboard %s in the ConfigMap is another", name)
		}
	}
	if len(configMap.Data) != len(dashboards) {
		t.Errorf("the ConfigMap has %d dashboards, want %d", len(configMap.Data), len(dashboards))
	}
	if !strings.HasPrefix(configMap.Name, "nginx-operator-") || configMap.Namespace != "monitoring" {
		t.Errorf("the ConfigMap is %s/%s", configMap.Namespace, configMap.Name)
	}
}
