package e2e

// spec.monitoring with real Pods and a real Prometheus that discovers the exporters as documented.
//
//   - Switching monitoring on or off fails no request. The operator creates the PodMonitor and the
//     PrometheusRule once the API of the Prometheus Operator is installed.
//   - If connections are near nginx's limit, an alert fires. If nginx drops connections, another
//     alert fires.
//   - Every series that an alert or a panel of the instances dashboard selects exists. Each panel
//     query has a value, and no rule fails.
//   - kubectl nginx top shows the load of each Pod.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/test/harness"
	"github.com/example/nginx-operator/test/monitoring"
)

func testInstanceMonitoring(t *testing.T, token string) {
	namespace := newNamespace(t, restricted)
	object := newObject(namespace, "web", 2)
	object.Spec.Nginx = &v1alpha2.Nginx{WorkerProcesses: ptr.To[int32](1), WorkerConnections: ptr.To[int32](64)}
	must(t, suite.admin.Create(t.Context(), object))
	waitForReady(t, object)

	loaded := startLoad(t, namespace, suite.reach.service(namespace, "web", 8080))
	update(t, object, func(o *v1alpha2.NginxOperator) {
		o.Spec.Monitoring = &v1alpha2.Monitoring{
			RequestMetrics: &v1alpha2.RequestMetrics{}, PodMonitor: &v1alpha2.PodMonitor{}, Alerts: &v1alpha2.Alerts{},
		}
	})
	waitFor(t, namespace, "the status to name the missing API", patience, func(ctx context.Context) error {
		if err := suite.admin.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			return err
		}
		if blocked := object.Status.BlockedBy; len(blocked) != 2 || blocked[0].Reason != v1alpha2.ReasonAPIMissing {
			return fmt.Errorf("blocked by %v", blocked)
		}
		return nil
	})
	waitForReady(t, object)
	installPrometheusOperatorAPI(t)
	rule := &monitoringv1.PrometheusRule{}
	waitFor(t, namespace, "PodMonitor and PrometheusRule", patience, func(ctx context.Context) error {
		return errors.Join(suite.admin.Get(ctx, client.ObjectKeyFromObject(object), &monitoringv1.PodMonitor{}),
			suite.admin.Get(ctx, client.ObjectKeyFromObject(object), rule))
	})

	began := time.Now()
	prometheus := startInstancePrometheus(t, rule, token)
	waitFor(t, namespace, "the metrics of both Pods", patience, func(ctx context.Context) error {
		return hasValue(ctx, prometheus, fmt.Sprintf(`sum(nginx_up{namespace=%q, app_kubernetes_io_instance="web"})`, namespace), 2)
	})
	haveTop(t, namespace)
	loaded.finish(t, namespace, "monitoring is switched on")
	fillConnections(t, prometheus, object)
	dashboard := harness.Must1(monitoring.ReadInstancesDashboard(suite.repository))(t)
	haveData(t, prometheus, rule, dashboard)
	recordDashboard(t, prometheus, dashboard, "dashboard-instances.json", began)

	loaded = startLoad(t, namespace, suite.reach.service(namespace, "web", 8080))
	update(t, object, func(o *v1alpha2.NginxOperator) { o.Spec.Monitoring.Enabled = ptr.To(false) })
	waitForReady(t, object)
	waitFor(t, namespace, "PodMonitor and PrometheusRule to go", patience, func(ctx context.Context) error {
		for _, child := range []client.Object{&monitoringv1.PodMonitor{}, &monitoringv1.PrometheusRule{}} {
			if err := suite.admin.Get(ctx, client.ObjectKeyFromObject(object), child); client.IgnoreNotFound(err) != nil || err == nil {
				return fmt.Errorf("%T: %w", child, err)
			}
		}
		return nil
	})
	loaded.finish(t, namespace, "monitoring is switched off")
}

// installPrometheusOperatorAPI installs the CRDs of PodMonitor, PrometheusRule, and ServiceMonitor
// until the test ends, and stops the leader. It would end its process itself, but later.
func installPrometheusOperatorAPI(t *testing.T) {
	t.Helper()
	installPrometheusCRDs(t)
	waitForOtherLeader(t, suite.operatorNamespace, harness.Must1(stopLeader(t.Context()))(t))
}

// installPrometheusCRDs installs the CRDs until the test ends. After their removal, it stops the
// leader.
func installPrometheusCRDs(t *testing.T) {
	t.Helper()
	t.Cleanup(func() {
		if _, err := stopLeader(context.Background()); err != nil {
			t.Error(err)
		}
	})
	crds := harness.Must1(harness.OptionalCRDs(t.Context(), filepath.Join(suite.repository, "bin")))(t)
	for _, name := range []string{harness.PodMonitorCRD, harness.PrometheusRuleCRD, harness.ServiceMonitorCRD} {
		must(t, harness.InstallCRD(t.Context(), suite.admin, crds[name]))
		t.Cleanup(func() {
			if err := harness.RemoveCRD(context.Background(), suite.admin, name); err != nil {
				t.Error(err)
			}
		})
	}
}

// startInstancePrometheus starts Prometheus with the alerts of an instance and with the documented
// scrape configurations of instances and the operator. Alerts fire without delay.
func startInstancePrometheus(t *testing.T, rule *monitoringv1.PrometheusRule, token string) *harness.Prometheus {
	t.Helper()
	config := documentedScrape(t, "nginx")
	jobs := config["scrape_configs"].([]any)
	jobs[0].(map[string]any)["kubernetes_sd_configs"].([]any)[0].(map[string]any)["kubeconfig_file"] = os.Getenv("KUBECONFIG")
	config["scrape_configs"] = append(jobs, operatorScrape(t, suite.operatorNamespace, token)["scrape_configs"].([]any)...)
	return startPrometheusWith(t, config, &rule.Spec)
}

// haveTop requires that kubectl nginx top shows both Pods under load, and one instance in the
// namespace.
func haveTop(t *testing.T, namespace string) {
	t.Helper()
	var list struct {
		Items []struct {
			Pod               string
			Pods              int
			RequestsPerSecond float64
			Active            int64
		}
	}
	must(t, json.Unmarshal([]byte(kubectl(t, "nginx", "top", "web", "-n", namespace, "-o", "json")), &list))
	if len(list.Items) != 2 {
		t.Fatalf("top shows %+v", list.Items)
	}
	for _, load := range list.Items {
		if load.Pod == "" || load.RequestsPerSecond < 1 || load.Active < 1 {
			t.Errorf("top shows %+v under load", load)
		}
	}
	must(t, json.Unmarshal([]byte(kubectl(t, "nginx", "top", "-n", namespace, "-o", "json")), &list))
	if len(list.Items) != 1 || list.Items[0].Pods != 2 {
		t.Errorf("top shows of all instances %+v", list.Items)
	}
	t.Log(kubectl(t, "nginx", "top", "web", "-n", namespace))
}

// fillConnections opens connections to one Pod until an alert reports that nginx is near its limit,
// then opens more until nginx drops some. Each connection has started a request, because nginx
// closes idle connections to make room for new ones.
func fillConnections(t *testing.T, prometheus *harness.Prometheus, object *v1alpha2.NginxOperator) {
	t.Helper()
	pods, err := podsOf(t.Context(), object)
	must(t, err)
	pod := map[string]string{"pod": pods[0].Name, "namespace": object.Namespace}
	var connections []net.Conn
	closeAll := func() {
		for _, connection := range connections {
			_ = connection.Close()
		}
	}
	defer closeAll()
	open := func() net.Conn {
		dialer := net.Dialer{Timeout: requestTimeout}
		connection, err := dialer.DialContext(t.Context(), "tcp", net.JoinHostPort(pods[0].Status.PodIP, "8080"))
		must(t, err)
		connections = append(connections, connection)
		_, _ = connection.Write([]byte("GET / HTTP/1.1\r\n")) // nginx may have closed it
		return connection
	}
	for range 54 {
		open()
	}
	took := waitFor(t, object.Namespace, "NginxConnectionsNearLimit to fire", patience, func(ctx context.Context) error {
		return fires(ctx, prometheus, "NginxConnectionsNearLimit", pod)
	})
	t.Logf("FIGURE monitoring of instances: NginxConnectionsNearLimit fires %s after 54 of 64 connections are open", seconds(took))
	// Open one connection at a time. If many arrive at once, nginx closes those whose request it
	// has not read yet, and drops none.
	for closed := 0; closed < 3; {
		if len(connections) == 100 {
			t.Fatalf("nginx has taken %d connections of 64, and closed %d", len(connections), closed)
		}
		if isClosed(open(), 100*time.Millisecond) {
			closed++
		}
	}
	closeAll() // otherwise nginx drops scrapes and probes, and the kubelet restarts it
	took = waitFor(t, object.Namespace, "NginxConnectionsDropped to fire", patience, func(ctx context.Context) error {
		return fires(ctx, prometheus, "NginxConnectionsDropped", pod)
	})
	t.Logf("FIGURE monitoring of instances: NginxConnectionsDropped fires %s after there are too many", seconds(took))
}

// isClosed reports whether the peer closes a connection within the given time.
func isClosed(connection net.Conn, within time.Duration) bool {
	_ = connection.SetReadDeadline(time.Now().Add(within))
	_, err := connection.Read(make([]byte, 1))
	return err != nil && !errors.Is(err, os.ErrDeadlineExceeded)
}

// startPrometheusWith starts Prometheus with rules and a configuration. It scrapes and evaluates
// every second, and alerts fire without delay.
func startPrometheusWith(t *testing.T, config map[string]any, rules *monitoringv1.PrometheusRuleSpec) *harness.Prometheus {
	t.Helper()
	dir := t.TempDir()
	for i := range rules.Groups {
		for j := range rules.Groups[i].Rules {
			rules.Groups[i].Rules[j].For = nil
		}
	}
	must(t, os.WriteFile(filepath.Join(dir, "rules.yaml"), harness.Must1(yaml.Marshal(rules))(t), 0o600))
	config["global"] = map[string]any{"scrape_interval": "1s", "evaluation_interval": "1s"}
	config["rule_files"] = []string{"rules.yaml"}
	file := filepath.Join(dir, "prometheus.yaml")
	must(t, os.WriteFile(file, harness.Must1(yaml.Marshal(config))(t), 0o600))
	prometheus, err := harness.StartPrometheus(t.Context(), filepath.Join(suite.repository, "bin", "prometheus"), file, dir)
	must(t, err)
	t.Cleanup(func() {
		prometheus.Stop()
		if t.Failed() {
			t.Log(prometheus.Summary())
		}
	})
	return prometheus
}
