package monitoring

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"sigs.k8s.io/yaml"

	"github.com/example/nginx-operator/test/harness"
)

// promtool runs the program that `make bin/promtool` builds, and returns its output.
func promtool(t *testing.T, args ...string) string {
	t.Helper()
	program := harness.Must1(filepath.Abs(filepath.Join(repository, "bin", "promtool")))(t)
	if _, err := os.Stat(program); err != nil {
		t.Fatalf("%v: `make bin/promtool` builds it", err)
	}
	out, err := exec.CommandContext(t.Context(), program, args...).CombinedOutput() //nolint:gosec // a tool of this repository
	if err != nil {
		t.Fatalf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// alertSets are the alerts of the operator, and the alerts of an instance.
var alertSets = map[string]struct {
	rules func() (*monitoringv1.PrometheusRule, error)
	// tests is the file in testdata with the promtool tests.
	tests string
	// wait is the shortest time that each alert must wait before it fires.
	wait time.Duration
}{
	"operator": {func() (*monitoringv1.PrometheusRule, error) { return Rules(repository) }, "alerts.yaml", 5 * time.Minute},
	"instance": {
		func() (*monitoringv1.PrometheusRule, error) { return InstanceRules("shop", "web", 1000), nil },
		"instance-alerts.yaml", 2 * time.Minute,
	},
}

// TestAlerts checks the alerts with promtool, and runs the promtool tests in testdata.
func TestAlerts(t *testing.T) {
	for name, set := range alertSets {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			rules := harness.Must1(set.rules())(t)
			tests := harness.Must1(os.ReadFile(filepath.Join("testdata", set.tests)))(t)
			harness.Must(t, os.WriteFile(filepath.Join(dir, "rules.yaml"), harness.Must1(yaml.Marshal(rules.Spec))(t), 0o600))
			harness.Must(t, os.WriteFile(filepath.Join(dir, "tests.yaml"), tests, 0o600))
			promtool(t, "check", "rules", "--lint=all", "--lint-fatal", filepath.Join(dir, "rules.yaml"))
			promtool(t, "test", "rules", filepath.Join(dir, "tests.yaml"))
		})
	}
}

// TestEveryAlertIsTested checks that each alert has a test in which it fires and a test in which it
// is silent, waits before it fires, and has a severity, a summary, and a description.
func TestEveryAlertIsTested(t *testing.T) {
	for name, set := range alertSets {
		t.Run(name, func(t *testing.T) {
			firing, silent := testedAlerts(t, filepath.Join("testdata", set.tests))
			for _, alert := range Alerts(harness.Must1(set.rules())(t)) {
				if !firing[alert.Alert] || !silent[alert.Alert] {
					t.Errorf("%s: a test in which it fires: %t, in which it is silent: %t", alert.Alert, firing[alert.Alert], silent[alert.Alert])
				}
				requireTold(t, alert, set.wait)
			}
		})
	}
}

// TestAlertsCannotBeForged checks that no alert depends on metrics that any Pod can raise, by
// sending reviews to the operator as the API server does.
func TestAlertsCannotBeForged(t *testing.T) {
	selected := 0
	for _, alert := range Alerts(harness.Must1(Rules(repository))(t)) {
		for _, selector := range Selectors(alert.Expr.StrVal) {
			if selected++; selector.Forgeable() {
				t.Errorf("%s depends on %s, which every Pod can raise", alert.Alert, selector.Metric)
			}
		}
	}
	if selected < 10 {
		t.Errorf("only %d selections in all alerts", selected)
	}
}

// testedAlerts returns the alerts that fire in at least one test of a file, and the alerts that are
// silent in at least one.
func testedAlerts(t *testing.T, name string) (firing, silent map[string]bool) {
	t.Helper()
	var file struct {
		Tests []struct {
			AlertRuleTest []struct {
				Alertname string `json:"alertname"`
				ExpAlerts []any  `json:"exp_alerts"`
			} `json:"alert_rule_test"`
		} `json:"tests"`
	}
	harness.Must(t, yaml.Unmarshal(harness.Must1(os.ReadFile(name))(t), &file))
	firing, silent = map[string]bool{}, map[string]bool{}
	for _, test := range file.Tests {
		for _, check := range test.AlertRuleTest {
			firing[check.Alertname] = firing[check.Alertname] || len(check.ExpAlerts) > 0
			silent[check.Alertname] = silent[check.Alertname] || len(check.ExpAlerts) == 0
		}
	}
	return firing, silent
}

// requireTold requires an alert to wait for at least the given time, and to have a severity, a
// summary, and a description.
func requireTold(t *testing.T, alert monitoringv1.Rule, wait time.Duration) {
	t.Helper()
	if alert.For == nil {
		t.Errorf("%s fires at once", alert.Alert)
	} else if waits, err := time.ParseDuration(string(*alert.For)); err != nil || waits < wait {
		t.Errorf("%s fires after %s", alert.Alert, *alert.For)
	}
	if !slices.Contains([]string{"critical", "warning"}, alert.Labels["severity"]) {
		t.Errorf("%s has the severity %q", alert.Alert, alert.Labels["severity"])
	}
	for _, text := range []string{"summary", "description"} {
		if !strings.HasSuffix(alert.Annotations[text], ".") {
			t.Errorf("%s has the %s %q", alert.Alert, text, alert.Annotations[text])
		}
	}
}

// TestAlertsOfAnInstance checks that the alerts of an instance select only that instance and only
// metrics that the exporter serves, and that they contain no placeholder.
func TestAlertsOfAnInstance(t *testing.T) {
	rules := InstanceRules("shop", "web", 1000)
	if text := string(harness.Must1(yaml.Marshal(rules))(t)); placeholder.MatchString(text) {
		t.Errorf("%q is left in\n%s", placeholder.FindString(text), text)
	}
	var queries []string
	types := exported(t)
	for _, alert := range Alerts(rules) {
		queries = append(queries, alert.Expr.StrVal)
		for _, selector := range Selectors(alert.Expr.StrVal) {
			if _, found := types[selector.Metric]; !found {
				t.Errorf("%s: the exporter serves no %s", alert.Alert, selector.Metric)
			}
		}
		for _, text := range []string{"summary", "description"} {
			if !strings.Contains(alert.Annotations[text], "shop/web") {
				t.Errorf("the %s of %s names no instance: %s", text, alert.Alert, alert.Annotations[text])
			}
		}
	}
	requireMatcher(t, queries, "namespace", "=", "shop")
	requireMatcher(t, queries, instanceLabel, "=", "web")
}

var placeholder = regexp.MustCompile(`NAMESPACE|NAME|LIMIT|ERRORPERCENT|LATENCYMILLISECONDS`)

// TestQueriesSelectWhatTheyMean checks that Prometheus can parse every query of the operator's
// alerts and of the panels. Each selector is restricted to the operator's job, to API server
// metrics about the operator's API, or to the selected namespaces and names of instances.
func TestQueriesSelectWhatTheyMean(t *testing.T) {
	var ofOperator, ofInstances []string
	for _, alert := range Alerts(harness.Must1(Rules(repository))(t)) {
		ofOperator = append(ofOperator, alert.Expr.StrVal)
	}
	for _, dashboard := range dashboards {
		for _, panel := range harness.Must1(dashboard.read(repository))(t).Panels {
			for _, query := range panel.Queries() {
				if strings.Contains(query, instanceLabel) {
					ofInstances = append(ofInstances, query)
				} else {
					ofOperator = append(ofOperator, query)
				}
			}
		}
	}
	if len(ofOperator) < 30 || len(ofInstances) < 6 {
		t.Fatalf("found %d queries of the operator and %d of instances", len(ofOperator), len(ofInstances))
	}
	for i, query := range ofOperator {
		ofOperator[i] = withoutAPIServer(t, query)
	}
	requireMatcher(t, ofOperator, "job", "=", Job)
	requireMatcher(t, ofInstances, "namespace", "=~", All)
	requireMatcher(t, ofInstances, instanceLabel, "=~", All)
}

// withoutAPIServer replaces each selector of API server metrics in a query with a selector of the
// operator's job. The selector must be restricted to the operator's API. It cannot be restricted to
// a job, because the API server's job has a different name in each cluster.
func withoutAPIServer(t *testing.T, query string) string {
	t.Helper()
	for _, selector := range Selectors(query) {
		if !selector.OfAPIServer() {
			continue
		}
		if !strings.Contains(selector.Text, `{name=~".+[.]nginxoperators[.]operator[.]example[.]com"`) &&
			!strings.Contains(selector.Text, `{crd_name="nginxoperators.operator.example.com"`) {
			t.Errorf("%s is about the API of others as well", selector.Text)
		}
		query = strings.ReplaceAll(query, selector.Text, `up{job="`+Job+`"}`)
	}
	return query
}

// instanceLabel is the label with the name of an NginxOperator. The PodMonitor of an instance copies
// it from the Pods.
const instanceLabel = "app_kubernetes_io_instance"

// requireMatcher requires each selector of the queries to have a matcher. It compares them with the
// output of promtool, which adds the matcher if it is missing. All queries are joined, because each
// query would start promtool again.
func requireMatcher(t *testing.T, queries []string, label, operator, value string) {
	t.Helper()
	all := "(" + strings.Join(queries, ") or (") + ")"
	written := promtool(t, "--experimental", "promql", "format", all)
	restricted := promtool(t, "--experimental", "promql", "label-matchers", "set", "--type="+operator, all, label, value)
	if restricted != written {
		t.Errorf("a selector lacks %s%s%q; with it they are\n%s\nbut they are\n%s", label, operator, value, restricted, written)
	}
	// Selectors, which the other tests use, must find every selector.
	for _, query := range queries {
		if found := len(Selectors(query)); found == 0 || found != strings.Count(query, label+operator+`"`+value+`"`) {
			t.Errorf("%d selectors are found in %s", found, query)
		}
	}
}
