package e2e

// config/monitoring with a real Prometheus that scrapes both replicas of the operator as
// documented.
//
//   - The token of the component's ServiceAccount can read the metrics.
//   - Every series that an alert or a panel selects exists. Each panel query has a value, and no
//     rule fails.
//   - If an instance is not Ready, its alerts fire. They end when the instance is Ready.
//   - The first command of each runbook works.

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/test/harness"
	"github.com/example/nginx-operator/test/monitoring"
)

// emptyByDesign maps the titles of panels without data on a healthy cluster to the reason.
var emptyByDesign = map[string]string{
	"Blocked instances, by reason": "only reasons of which there is an instance are shown",

	"Failed webhook calls of the API server": "the API server has a series only after a call has failed",
}

// bornAtFailure maps API server metrics that have no series before the first failure to metrics
// with the same labels that always have one.
var bornAtFailure = map[string]string{
	"apiserver_admission_webhook_fail_open_count":             "apiserver_admission_webhook_request_total",
	"apiserver_admission_webhook_rejection_count":             "apiserver_admission_webhook_request_total",
	"apiserver_crd_conversion_webhook_duration_seconds_count": "apiserver_crd_conversion_webhook_duration_seconds_count",
}

// ofFailures matches the label matchers that limit an alert to failures.
var ofFailures = regexp.MustCompile(`, *(error_type!="no_error"|succeeded="false")`)

// whileWell returns a selection that has data on a healthy cluster.
func whileWell(selector monitoring.Selector) string {
	if instead, found := bornAtFailure[selector.Metric]; found {
		return ofFailures.ReplaceAllString(strings.Replace(selector.Text, selector.Metric, instead, 1), "")
	}
	return selector.Text
}

// metricsTokenFile installs the access to the metrics, and returns the file of a token with it.
func metricsTokenFile(t *testing.T) string {
	t.Helper()
	token := filepath.Join(t.TempDir(), "token")
	must(t, os.WriteFile(token, installAccess(t, suite.operatorNamespace), 0o600))
	return token
}

func testMonitoring(t *testing.T, token string) {
	operator := suite.operatorNamespace
	namespace := newNamespace(t, restricted)
	prometheus := startPrometheusWith(t, operatorScrape(t, operator, token), &harness.Must1(monitoring.Rules(suite.repository))(t).Spec)
	began := time.Now()
	waitFor(t, operator, "the metrics of both replicas", patience, func(ctx context.Context) error {
		return hasValue(ctx, prometheus, `sum(up{job="nginx-operator"})`, 2)
	})
	t.Logf("FIGURE monitoring: both replicas are scraped %s after Prometheus is ready", seconds(time.Since(began)))
	haveData(t, prometheus, harness.Must1(monitoring.Rules(suite.repository))(t), harness.Must1(monitoring.ReadDashboard(suite.repository))(t))

	const alert = "NginxInstanceNotReady"
	firing := func(ctx context.Context) error {
		return fires(ctx, prometheus, alert, map[string]string{"namespace": operator})
	}
	silent := func(ctx context.Context) error {
		if firing(ctx) == nil {
			return fmt.Errorf("%s fires", alert)
		}
		return nil
	}
	// Instances of earlier tests may still exist.
	waitFor(t, operator, alert+" to be silent", patience, silent)
	object := newObject(namespace, "web", 1)
	object.Spec.Config = &v1alpha2.Config{ConfigMapRef: &v1alpha2.ConfigMapKeyReference{Name: "site", Key: "site.conf"}}
	must(t, suite.admin.Create(t.Context(), object))
	took := waitFor(t, namespace, alert+" to fire", patience, func(ctx context.Context) error {
		degraded := map[string]string{"namespace": operator, "reason": v1alpha2.ReasonReferenceNotFound}
		return errors.Join(firing(ctx), fires(ctx, prometheus, "NginxInstanceDegraded", degraded))
	})
	t.Logf("FIGURE monitoring: %s fires %s after the instance was created", alert, seconds(took))
	must(t, suite.admin.Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "site"},
		Data:       map[string]string{"site.conf": "server {\n  listen 8080;\n}\n"},
	}))
	waitForReady(t, object)
	took = waitFor(t, namespace, alert+" to end", patience, silent)
	t.Logf("FIGURE monitoring: %s ends %s after the instance is Ready", alert, seconds(took))
	recordDashboard(t, prometheus, harness.Must1(monitoring.ReadDashboard(suite.repository))(t), "dashboard.json", began)
}

// operatorScrape returns the documented scrape configurations of the operator and of the API
// server. Prometheus authenticates to the operator with a token in a file, and to the API server
// with the administrator's certificate.
func operatorScrape(t *testing.T, operator, token string) map[string]any {
	t.Helper()
	config := documentedScrape(t, monitoring.Job)
	job := config["scrape_configs"].([]any)[0].(map[string]any)
	job["authorization"].(map[string]any)["credentials_file"] = token
	discovery := job["kubernetes_sd_configs"].([]any)[0].(map[string]any)
	discovery["kubeconfig_file"] = os.Getenv("KUBECONFIG")
	discovery["namespaces"] = map[string]any{"names": []string{operator}}
	config["scrape_configs"] = append(config["scrape_configs"].([]any), apiServerScrape(t))
	return config
}

// apiServerScrape returns the documented scrape configuration of the API server, with the
// administrator's certificate.
func apiServerScrape(t *testing.T) map[string]any {
	t.Helper()
	admin, err := ctrl.GetConfig()
	must(t, err)
	must(t, rest.LoadTLSFiles(admin))
	dir := t.TempDir()
	files := map[string][]byte{"ca_file": admin.CAData, "cert_file": admin.CertData, "key_file": admin.KeyData}
	connection := map[string]any{}
	for name, data := range files {
		connection[name] = filepath.Join(dir, name)
		must(t, os.WriteFile(filepath.Join(dir, name), data, 0o600))
	}
	job := documentedScrape(t, "apiserver")["scrape_configs"].([]any)[0].(map[string]any)
	delete(job, "authorization")
	job["tls_config"] = connection
	// After many tests, the API server needs more than the interval of the other jobs for its
	// answer.
	job["scrape_interval"], job["scrape_timeout"] = "5s", "5s"
	job["kubernetes_sd_configs"].([]any)[0].(map[string]any)["kubeconfig_file"] = os.Getenv("KUBECONFIG")
	return job
}

// documentedScrape returns the documented Prometheus configuration whose first job has this name.
func documentedScrape(t *testing.T, job string) map[string]any {
	t.Helper()
	page := harness.Must1(os.ReadFile(filepath.Join(suite.repository, "docs/guide/operations/monitoring.md")))(t)
	block := regexp.MustCompile("(?ms)^```yaml\n(scrape_configs:\n- job_name: " + job + "\n.*?)^```$").FindSubmatch(page)
	if block == nil {
		t.Fatalf("the documentation has no scrape_configs with the job %s", job)
	}
	config := map[string]any{}
	must(t, yaml.Unmarshal(block[1], &config))
	return config
}

// installAccess creates the objects of config/monitoring that a cluster without the Prometheus
// Operator supports, and returns the token for the metrics.
func installAccess(t *testing.T, operator string) []byte {
	t.Helper()
	secret := &corev1.Secret{}
	for _, rendered := range harness.Must1(monitoring.Render(suite.delivery, operator))(t) {
		if rendered.GetGvk().Group == "monitoring.coreos.com" {
			continue // the cluster does not serve this API
		}
		object := &unstructured.Unstructured{}
		must(t, yaml.Unmarshal([]byte(rendered.MustYaml()), &object.Object))
		must(t, suite.admin.Create(t.Context(), object))
		t.Cleanup(func() {
			if err := suite.admin.Delete(context.Background(), object); err != nil {
				t.Errorf("failed to delete %s %s: %v", object.GetKind(), object.GetName(), err)
			}
		})
		if object.GetKind() == "Secret" {
			secret.Namespace, secret.Name = object.GetNamespace(), object.GetName()
		}
	}
	waitFor(t, operator, "the token", patience, func(ctx context.Context) error {
		err := suite.admin.Get(ctx, client.ObjectKeyFromObject(secret), secret)
		if err == nil && len(secret.Data[corev1.ServiceAccountTokenKey]) == 0 {
			err = errors.New("the Secret has no token yet")
		}
		return err
	})
	return secret.Data[corev1.ServiceAccountTokenKey]
}

// haveData waits until every series that alerts and panels select exists, each panel query that is
// not in emptyByDesign has a value, and Prometheus evaluates each alert without an error.
func haveData(t *testing.T, prometheus *harness.Prometheus, rule *monitoringv1.PrometheusRule, dashboard *monitoring.Dashboard) {
	t.Helper()
	selections := map[string]bool{}
	alerts := monitoring.Alerts(rule)
	for _, alert := range alerts {
		for _, selector := range monitoring.Selectors(alert.Expr.StrVal) {
			selections[whileWell(selector)] = true
		}
	}
	// The value says whether a query must have one.
	queries := map[string]bool{}
	for _, panel := range dashboard.Panels {
		for _, query := range panel.Queries() {
			for _, selector := range monitoring.Selectors(query) {
				selections[whileWell(selector)] = true
			}
			queries[query] = queries[query] || emptyByDesign[panel.Title] == ""
		}
	}
	if len(selections)+len(queries) < 15 {
		t.Fatalf("only %d selections and %d queries", len(selections), len(queries))
	}
	waitFor(t, suite.operatorNamespace, "what alerts and panels show", patience, func(ctx context.Context) error {
		var errs []error
		for _, query := range slices.Concat(slices.Collect(maps.Keys(selections)), slices.Collect(maps.Keys(queries))) {
			samples, err := prometheus.Query(ctx, query)
			if err == nil && len(samples) == 0 && (selections[query] || queries[query]) {
				err = fmt.Errorf("%s has no value", query)
			}
			errs = append(errs, err)
		}
		evaluated, err := prometheus.Rules(ctx)
		for _, alert := range alerts {
			if problem, found := evaluated[alert.Alert]; !found || problem != "" {
				errs = append(errs, fmt.Errorf("%s: evaluated %t, %s", alert.Alert, found, problem))
			}
		}
		return errors.Join(append(errs, err)...)
	})
	t.Logf("FIGURE monitoring: %d selections and %d queries have data", len(selections), len(queries))
}

func hasValue(ctx context.Context, prometheus *harness.Prometheus, query string, want float64) error {
	samples, err := prometheus.Query(ctx, query)
	if err == nil && (len(samples) != 1 || samples[0].Value != want) {
		err = fmt.Errorf("%s is %v, want %v", query, samples, want)
	}
	return err
}

// fires returns an error unless an alert with this name and these labels fires.
func fires(ctx context.Context, prometheus *harness.Prometheus, name string, labels map[string]string) error {
	alerts, err := prometheus.Alerts(ctx)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(alerts, func(alert harness.Alert) bool {
		for label, value := range labels {
			if alert.Labels[label] != value {
				return false
			}
		}
		return alert.Labels["alertname"] == name && alert.State == "firing"
	}) {
		return nil
	}
	return fmt.Errorf("%s does not fire, but %v", name, alerts)
}

// testRunbooks runs the first commands of each runbook.
func testRunbooks(t *testing.T) {
	rules := harness.Must1(monitoring.Rules(suite.repository))(t)
	for _, alert := range monitoring.Alerts(rules) {
		page := harness.Must1(os.ReadFile(filepath.Join(suite.repository, "docs/runbooks", alert.Alert+".md")))(t)
		block := regexp.MustCompile("(?s)\n```sh\n(.*?)```\n").FindSubmatch(page)
		if block == nil {
			t.Fatalf("the runbook of %s has no command", alert.Alert)
		}
		script := "set -eo pipefail\n" + strings.ReplaceAll(string(block[1]), "OPERATOR_NAMESPACE", suite.operatorNamespace)
		out, err := command(t.Context(), "bash", "-c", script)
		if err != nil {
			t.Errorf("%s: %v", alert.Alert, err)
		}
		t.Logf("%s:\n%s", alert.Alert, out)
	}
}
