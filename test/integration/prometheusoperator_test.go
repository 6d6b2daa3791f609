//go:build matrix

package integration

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/test/harness"
)

// TestPrometheusOperator verifies that a real Prometheus Operator, with its own CRDs, adds an
// instance's PodMonitor and PrometheusRule to the configuration of a Prometheus, that Prometheus
// accepts this configuration, and that the Prometheus Operator removes both with the instance's
// monitoring.
func TestPrometheusOperator(t *testing.T) {
	ctx := t.Context()
	prometheusOperator := must1(harness.NewPrometheusOperator(
		ctx, filepath.Join(os.Getenv("KUBEBUILDER_ASSETS"), "prometheus-operator"), "../../hack/tools/prometheus-operator"))(t)
	t.Log("MATRIX prometheus-operator", prometheusOperator.Version)
	useCRDsOf(t, prometheusOperator)
	must(t, prometheusOperator.Start(ctx, suite.config, t.TempDir()))
	t.Cleanup(func() {
		prometheusOperator.Stop()
		if t.Failed() {
			t.Log("the Prometheus Operator:", prometheusOperator.Summary())
		}
	})

	namespace := newNamespace(t)
	object := createWeb(t, namespace, func(s *v1alpha2.NginxOperatorSpec) { s.Monitoring = monitored() })
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"release": "prometheus"}}
	create(t, &monitoringv1.Prometheus{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "main"},
		Spec: monitoringv1.PrometheusSpec{
			CommonPrometheusFields: monitoringv1.CommonPrometheusFields{PodMonitorSelector: selector}, RuleSelector: selector,
		},
	})

	job := "podMonitor/" + namespace + "/web/0"
	var config, rules string
	waitFor(t, func() (err error) {
		if config, err = generatedConfig(ctx, namespace); err != nil {
			return err
		}
		if rules, err = generatedRules(ctx, namespace); err != nil {
			return err
		}
		if jobs, err := jobsOf(config); err != nil || !slices.Contains(jobs, job) || rules == "" {
			return fmt.Errorf("the jobs are %v, and the rules %q: %w", jobs, rules, err)
		}
		return nil
	})
	if !strings.Contains(config, "follow_redirects: false") {
		t.Errorf("a scrape can leave the Pod: %s", config)
	}
	rule := must1(childrenOf(ctx, namespace, "web"))(t).rule
	var loaded struct{ Groups []monitoringv1.RuleGroup }
	must(t, yaml.Unmarshal([]byte(rules), &loaded))
	if diff := cmp.Diff(alertNames(rule.Spec.Groups), alertNames(loaded.Groups)); diff != "" || len(rule.Spec.Groups) == 0 {
		t.Errorf("alerts of the PrometheusRule, and of Prometheus (-want +got):\n%s", diff)
	}
	promtool(t, "config", config, "--syntax-only")
	promtool(t, "rules", rules)

	update(t, object, func(o *v1alpha2.NginxOperator) { o.Spec.Monitoring.Enabled = ptr.To(false) })
	waitFor(t, func() error {
		config, err := generatedConfig(ctx, namespace)
		if err != nil {
			return err
		}
		rules, err := generatedRules(ctx, namespace)
		if err != nil {
			return err
		}
		if jobs, err := jobsOf(config); err != nil || slices.Contains(jobs, job) || rules != "" {
			return fmt.Errorf("the jobs still are %v, and the rules %q: %w", jobs, rules, err)
		}
		return nil
	})
}

// useCRDsOf replaces the suite's CRDs of the Prometheus Operator by all CRDs of a version, until
// the test ends.
func useCRDsOf(t *testing.T, prometheusOperator *harness.PrometheusOperator) {
	t.Helper()
	ours := []string{harness.PodMonitorCRD, harness.PrometheusRuleCRD, harness.ServiceMonitorCRD}
	for _, name := range ours {
		must(t, harness.RemoveCRD(t.Context(), suite.admin, name))
	}
	t.Cleanup(func() {
		for _, name := range ours {
			must(t, harness.InstallCRD(context.Background(), suite.admin, suite.optional[name]))
		}
		restartOperator(t)
	})
	for _, crd := range prometheusOperator.CRDs {
		must(t, harness.InstallCRD(t.Context(), suite.admin, crd))
		t.Cleanup(func() { must(t, harness.RemoveCRD(context.Background(), suite.admin, crd.Name)) })
	}
	restartOperator(t)
}

// generatedConfig returns the configuration that the Prometheus Operator generated.
func generatedConfig(ctx context.Context, namespace string) (string, error) {
	secret := &corev1.Secret{}
	if err := suite.admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "prometheus-main"}, secret); err != nil {
		return "", err
	}
	reader, err := gzip.NewReader(bytes.NewReader(secret.Data["prometheus.yaml.gz"]))
	if err != nil {
		return "", fmt.Errorf("failed to unpack the configuration: %w", err)
	}
	config, err := io.ReadAll(io.LimitReader(reader, 1<<20))
	return string(config), err
}

// generatedRules returns the rules that the Prometheus Operator generated, or "" if there are none.
func generatedRules(ctx context.Context, namespace string) (string, error) {
	files := &corev1.ConfigMap{}
	if err := suite.admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "prometheus-main-rulefiles-0"}, files); err != nil {
		return "", err
	}
	var rules []string
	for _, data := range files.Data {
		rules = append(rules, data)
	}
	if len(rules) > 1 {
		return "", fmt.Errorf("there are %d files of rules, want 1", len(rules))
	}
	return strings.Join(rules, ""), nil
}

func jobsOf(config string) ([]string, error) {
	var parsed struct {
		Scrapes []struct {
			Job string `json:"job_name"`
		} `json:"scrape_configs"`
	}
	err := yaml.Unmarshal([]byte(config), &parsed)
	jobs := make([]string, 0, len(parsed.Scrapes))
	for _, scrape := range parsed.Scrapes {
		jobs = append(jobs, scrape.Job)
	}
	return jobs, err
}

func alertNames(groups []monitoringv1.RuleGroup) []string {
	var names []string
	for _, group := range groups {
		for _, rule := range group.Rules {
			names = append(names, group.Name+"/"+rule.Alert)
		}
	}
	slices.Sort(names)
	return names
}

// promtool checks a file of Prometheus with Prometheus' own tool.
func promtool(t *testing.T, what, text string, args ...string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), what+".yaml")
	must(t, os.WriteFile(file, []byte(text), 0o600))
	args = append(append([]string{"check", what}, args...), file)
	command := exec.CommandContext(t.Context(), filepath.Join(os.Getenv("KUBEBUILDER_ASSETS"), "promtool"), args...)
	if out, err := command.CombinedOutput(); err != nil {
		t.Errorf("promtool refuses the %s: %v\n%s\n%s", what, err, out, text)
	}
}
