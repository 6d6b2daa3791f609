// Package monitoring reads the alerts and dashboards of config/monitoring for several kinds of
// tests: against promtool, a real operator, and a real Prometheus.
package monitoring

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/kustomize/api/resource"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/yaml"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/hack/kustomize"
	"github.com/example/nginx-operator/internal/operand"
)

// Job is the value of the label job that alerts and panels select.
const Job = "nginx-operator"

// Render returns the objects of a user's kustomization with config/monitoring and other parts of
// config. namespace is the operator's namespace, or "" for the namespace of config/default.
// repository is the path of the repository.
func Render(repository, namespace string, parts ...string) ([]*resource.Resource, error) {
	rendered, err := kustomize.Render(filepath.Join(repository, "config"),
		types.Kustomization{Namespace: namespace, Resources: parts, Components: []string{"monitoring"}})
	if err != nil {
		return nil, err
	}
	return rendered.Resources(), nil
}

// Rules returns the PrometheusRule of config/monitoring. Unknown fields are errors.
func Rules(repository string) (*monitoringv1.PrometheusRule, error) {
	text, err := os.ReadFile(filepath.Join(repository, "config", "monitoring", "prometheusrule.yaml")) //nolint:gosec // of this repository
	if err != nil {
		return nil, fmt.Errorf("failed to read the alerts: %w", err)
	}
	rules := &monitoringv1.PrometheusRule{}
	if err := yaml.UnmarshalStrict(text, rules); err != nil {
		return nil, fmt.Errorf("failed to read the alerts: %w", err)
	}
	return rules, nil
}

// InstanceRules returns the PrometheusRule that the operator creates for an NginxOperator with request
// metrics. limit is
// the number of connections that nginx may have open in each Pod.
func InstanceRules(namespace, name string, limit int32) *monitoringv1.PrometheusRule {
	object := &v1alpha2.NginxOperator{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	object.Spec.Nginx = &v1alpha2.Nginx{WorkerProcesses: ptr.To[int32](1), WorkerConnections: &limit}
	object.Spec.Monitoring = &v1alpha2.Monitoring{Alerts: &v1alpha2.Alerts{}, RequestMetrics: &v1alpha2.RequestMetrics{}}
	return operand.ChildOf[*monitoringv1.PrometheusRule](operand.Desired(object, operand.Inputs{}))
}

// Alerts returns the alerts of a PrometheusRule in order.
func Alerts(rules *monitoringv1.PrometheusRule) []monitoringv1.Rule {
	var out []monitoringv1.Rule
	for _, group := range rules.Spec.Groups {
		out = append(out, group.Rules...)
	}
	return out
}

// Dashboard contains the fields of a Grafana dashboard that the tests read.
type Dashboard struct {
	UID        string  `json:"uid"`
	Title      string  `json:"title"`
	Panels     []Panel `json:"panels"`
	Templating struct {
		List []Variable `json:"list"`
	} `json:"templating"`
}

// Variable is a variable that the viewer of a dashboard selects.
type Variable struct {
	Name string `json:"name"`
	// Type is datasource, or query if the values are the values of a label.
	Type string `json:"type"`
	// AllValue is the regular expression in queries if all values are selected.
	AllValue string `json:"allValue"`
	// Definition is the source of the values: label_values(selector, label).
	Definition string `json:"definition"`
}

// Panel is a panel of a dashboard.
type Panel struct {
	ID          int    `json:"id"`
	Type        string `json:"type"`
	Title       string `json:"title"`
	Description string `json:"description"`
	Datasource  struct {
		UID string `json:"uid"`
	} `json:"datasource"`
	FieldConfig struct {
		Defaults struct {
			// Unit is the identifier of a Grafana unit.
			Unit string `json:"unit"`
		} `json:"defaults"`
	} `json:"fieldConfig"`
	GridPos GridPos `json:"gridPos"`
	Links   []Link  `json:"links"`
	Targets []struct {
		RefID        string `json:"refId"`
		Expr         string `json:"expr"`
		LegendFormat string `json:"legendFormat"`
	} `json:"targets"`
}

// GridPos is the place of a panel in a grid of 24 columns.
type GridPos struct {
	X int `json:"x"`
	Y int `json:"y"`
	W int `json:"w"`
	H int `json:"h"`
}

// Link is a link of a panel.
type Link struct {
	Title string `json:"title"`
	URL   string `json:"url"`
}

// ReadDashboard returns the dashboard of the operator and its metrics.
func ReadDashboard(repository string) (*Dashboard, error) {
	return readDashboard(repository, "dashboard.json")
}

// ReadInstancesDashboard returns the dashboard of the instances' traffic.
func ReadInstancesDashboard(repository string) (*Dashboard, error) {
	return readDashboard(repository, "dashboard-instances.json")
}

func readDashboard(repository, file string) (*Dashboard, error) {
	text, err := os.ReadFile(filepath.Join(repository, "config", "monitoring", file))
	if err != nil {
		return nil, fmt.Errorf("failed to read the dashboard: %w", err)
	}
	dashboard := &Dashboard{}
	if err := json.Unmarshal(text, dashboard); err != nil {
		return nil, fmt.Errorf("failed to read the dashboard %s: %w", file, err)
	}
	return dashboard, nil
}

// variables are the values of variables in tested queries: a minute if the value depends on the
// width of the screen, an hour if it depends on the displayed time range, and otherwise all values.
var variables = strings.NewReplacer("$__rate_interval", "1m", "$__range", "1h", "$namespace", All, "$instance", All)

// All is the regular expression for a variable with all values selected.
const All = ".+"

// Queries returns the queries of a panel as Grafana sends them with all values of the variables
// selected.
func (p *Panel) Queries() []string {
	var out []string
	for _, target := range p.Targets {
		out = append(out, variables.Replace(target.Expr))
	}
	return out
}

// Selector selects series in a query. Metric is the name of the metric, and Text is the name with
// its matchers.
type Selector struct{ Metric, Text string }

var selector = regexp.MustCompile(`([a-zA-Z_:][a-zA-Z0-9_:]*)\{[^}]*\}`)

// OfOperator reports whether the selector is restricted to the operator's job.
func (s Selector) OfOperator() bool { return strings.Contains(s.Text, `job="`+Job+`"`) }

// OfAPIServer reports whether the selector selects API server metrics.
func (s Selector) OfAPIServer() bool { return strings.HasPrefix(s.Metric, "apiserver_") }

// Forgeable reports whether any Pod that can reach the operator's ports can change the selected
// series.
func (s Selector) Forgeable() bool {
	return strings.HasPrefix(s.Metric, "controller_runtime_webhook_") || s.Metric == "nginx_operator_conversion_failures_total"
}

// Selectors returns the selectors of a query. It finds only selectors with matchers. A test checks
// that all selectors have matchers.
func Selectors(query string) []Selector {
	var out []Selector
	for _, found := range selector.FindAllStringSubmatch(query, -1) {
		out = append(out, Selector{Metric: found[1], Text: found[0]})
	}
	return out
}

// Series returns the name under which a metric is served. For a histogram, it is the name without
// the suffix of its parts.
func (s Selector) Series() string {
	for _, ending := range []string{"_bucket", "_sum", "_count"} {
		if name, found := strings.CutSuffix(s.Metric, ending); found {
			return name
		}
	}
	return s.Metric
}
