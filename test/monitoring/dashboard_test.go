package monitoring

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/example/nginx-operator/test/harness"
)

// panelWidth is how many columns Grafana has.
const panelWidth = 24

// The dashboard is one that Grafana shows: identities are unique, no panel covers another, each says what it shows and where from.
func TestDashboard(t *testing.T) {
	dashboard := harness.Must1(ReadDashboard(repository))(t)
	if dashboard.UID == "" || dashboard.Title == "" || len(dashboard.Panels) < 10 {
		t.Fatalf("%q, %q with %d panels", dashboard.UID, dashboard.Title, len(dashboard.Panels))
	}
	if variables := dashboard.Templating.List; len(variables) != 1 || variables[0].Type != "datasource" {
		t.Fatalf("the variables are %+v; the data source is the only one", variables)
	}
	source := "${" + dashboard.Templating.List[0].Name + "}"
	ids, titles, taken := map[int]bool{}, map[string]bool{}, map[[2]int]string{}
	for _, panel := range dashboard.Panels {
		if panel.ID == 0 || ids[panel.ID] || panel.Title == "" || titles[panel.Title] {
			t.Errorf("panel %d, %q: the id or the title is missing or there twice", panel.ID, panel.Title)
		}
		ids[panel.ID], titles[panel.Title] = true, true
		requirePlace(t, &panel, taken)
		if panel.Type != "row" {
			requireQueries(t, &panel, source)
		}
	}
}

// requirePlace takes the cells of a panel, each of which has to be free.
func requirePlace(t *testing.T, panel *Panel, taken map[[2]int]string) {
	t.Helper()
	at := panel.GridPos
	if at.W < 1 || at.H < 1 || at.X < 0 || at.X+at.W > panelWidth {
		t.Errorf("%s is at %+v", panel.Title, at)
	}
	for x := at.X; x < at.X+at.W; x++ {
		for y := at.Y; y < at.Y+at.H; y++ {
			if other := taken[[2]int{x, y}]; other != "" {
				t.Fatalf("%s covers %s", panel.Title, other)
			}
			taken[[2]int{x, y}] = panel.Title
		}
	}
}

// requireQueries requires what a panel shows to be said, and its queries to be told apart.
func requireQueries(t *testing.T, panel *Panel, source string) {
	t.Helper()
	if panel.Description == "" || len(panel.Targets) == 0 || panel.Datasource.UID != source {
		t.Errorf("%s has the description %q, %d queries and the data source %s",
			panel.Title, panel.Description, len(panel.Targets), panel.Datasource.UID)
	}
	references := map[string]bool{}
	for _, target := range panel.Targets {
		if target.RefID == "" || references[target.RefID] || target.Expr == "" || target.LegendFormat == "" {
			t.Errorf("%s has the query %+v", panel.Title, target)
		}
		references[target.RefID] = true
	}
}

// Each alert is on a panel, which links to its runbook and shows every metric that the alert looks at.
func TestEveryAlertHasAPanel(t *testing.T) {
	dashboard := harness.Must1(ReadDashboard(repository))(t)
	left := map[string]bool{}
	for _, alert := range Alerts(harness.Must1(Rules(repository))(t)) {
		left[alert.Annotations["runbook_url"]] = true
		at := slices.IndexFunc(dashboard.Panels, func(panel Panel) bool {
			return slices.ContainsFunc(panel.Links, func(link Link) bool {
				return link.Title == "Runbook: "+alert.Alert && link.URL == alert.Annotations["runbook_url"]
			})
		})
		if at < 0 {
			t.Errorf("no panel links to the runbook of %s", alert.Alert)
			continue
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
	for _, panel := range dashboard.Panels {
		for _, link := range panel.Links {
			if !left[link.URL] {
				t.Errorf("panel %q links to %s, the runbook of no alert", panel.Title, link.URL)
			}
		}
	}
}

// The component makes the dashboard a ConfigMap that Grafana's sidecar finds, and nothing of it is lost on the way.
func TestDashboardIsAConfigMap(t *testing.T) {
	configMaps := decode[corev1.ConfigMap](t, manifests(t, "monitoring")["ConfigMap"])
	configMap := one(t, configMaps, func(c *corev1.ConfigMap) bool { return c.Labels["grafana_dashboard"] == "1" })
	file := harness.Must1(os.ReadFile(filepath.Join(repository, "config/monitoring/dashboard.json")))(t)
	var want, got any
	harness.Must(t, json.Unmarshal(file, &want))
	harness.Must(t, yaml.Unmarshal([]byte(configMap.Data["nginx-operator.json"]), &got))
	if text := harness.Must1(json.Marshal(want))(t); string(text) != string(harness.Must1(json.Marshal(got))(t)) {
		t.Error("the dashboard in the ConfigMap is another")
	}
	if !strings.HasPrefix(configMap.Name, "nginx-operator-") || configMap.Namespace != "monitoring" {
		t.Errorf("the ConfigMap is %s/%s", configMap.Namespace, configMap.Name)
	}
}
