package command

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/prometheus/common/model"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/example/nginx-operator/internal/wellknown"
)

// metrics is the response of an exporter.
const metrics = `# TYPE nginx_connections_accepted counter
nginx_connections_accepted 12
# TYPE nginx_connections_active gauge
nginx_connections_active 5
# TYPE nginx_connections_handled counter
nginx_connections_handled 10
# TYPE nginx_connections_reading gauge
nginx_connections_reading 1
# TYPE nginx_connections_waiting gauge
nginx_connections_waiting 2
# TYPE nginx_connections_writing gauge
nginx_connections_writing 2
# TYPE nginx_http_requests_total counter
nginx_http_requests_total 100
# TYPE nginx_up gauge
nginx_up 1
# TYPE nginxexporter_build_info gauge
nginxexporter_build_info{version="a"} 1
nginxexporter_build_info{version="b"} 1
`

// TestLoad verifies the gauges of the second scrape, and the rate between both scrapes.
func TestLoad(t *testing.T) {
	now, err := parse(strings.NewReader(metrics))
	if err != nil {
		t.Fatal(err)
	}
	now.at = time.Now()
	before := scrape{at: now.at.Add(-4 * time.Second), values: map[string]float64{"nginx_http_requests_total": 80}}
	want := Load{RequestsPerSecond: 5, Active: 5, Reading: 1, Writing: 2, Waiting: 2, Dropped: 2}
	if diff := cmp.Diff(want, loadOf(before, now)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	before.values["nginx_http_requests_total"] = 1000
	if got := loadOf(before, now).RequestsPerSecond; got != 25 {
		t.Errorf("%v requests per second after a restart", got)
	}
	for text, want := range map[string]string{
		strings.Replace(metrics, "nginx_up 1", "nginx_up 0", 1): "nginx does not answer the exporter (nginx_up 0)",
		"<html>":     "text format parsing error",
		"nginx_up a": "text format parsing error",
	} {
		if _, err := parse(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text[:min(len(text), 20)], err)
		}
	}
}

// TestPrintLoads verifies a row for each Pod, or for all Pods of an instance.
func TestPrintLoads(t *testing.T) {
	loads := []Load{
		{Namespace: "shop", Name: "web", Pod: "web-1", RequestsPerSecond: 1.25, Active: 1, Reading: 1, Writing: 1, Waiting: 1, Dropped: 1},
		{Namespace: "shop", Name: "web", Pod: "web-2", RequestsPerSecond: 2, Active: 2},
		{Namespace: "shop", Name: "api", Pod: "api-1"},
	}
	for want, shown := range map[string][]Load{
		"POD     REQUESTS/S   ACTIVE   READING   WRITING   WAITING   DROPPED\n" +
			"web-1   1.2          1        1         1         1         1\n" +
			"web-2   2.0          2        0         0         0         0\n" +
			"api-1   0.0          0        0         0         0         0\n": loads,
		"NAMESPACE   NAME   PODS   REQUESTS/S   ACTIVE   READING   WRITING   WAITING   DROPPED\n" +
			"shop        web    2      3.2          3        1         1         1         1\n" +
			"shop        api    1      0.0          0        0         0         0         0\n": sums(loads),
	} {
		var out bytes.Buffer
		var format output
		if err := (&cli{IOStreams: genericiooptions.IOStreams{Out: &out}}).printLoads(shown, &format); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, out.String()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

// TestRunningPort verifies that only a running sidecar of the operator is scraped.
func TestRunningPort(t *testing.T) {
	other := corev1.Container{Name: "other", Ports: []corev1.ContainerPort{{ContainerPort: 80}}}
	exporter := corev1.Container{Name: wellknown.ExporterContainer, Ports: []corev1.ContainerPort{{ContainerPort: 9114}}}
	running := corev1.ContainerStatus{
		Name: exporter.Name, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
	}
	for _, test := range []struct {
		container corev1.Container
		status    corev1.ContainerStatus
		want      int32
	}{{exporter, running, 9114}, {exporter, corev1.ContainerStatus{Name: exporter.Name}, 0}, {other, running, 0}} {
		pod := &corev1.Pod{Spec: corev1.PodSpec{InitContainers: []corev1.Container{other, test.container}}}
		pod.Status.InitContainerStatuses = []corev1.ContainerStatus{test.status}
		if got := runningPort(pod, wellknown.ExporterContainer); got != test.want {
			t.Errorf("port %d, want %d", got, test.want)
		}
	}
}

// requestMetrics is the response of a receiver of request metrics.
const requestMetrics = `# TYPE nginx_request_metrics_lost_messages_total counter
nginx_request_metrics_lost_messages_total 7
# TYPE nginx_server_requests_total counter
nginx_server_requests_total{server="shop.example.com",class="2xx"} 100
nginx_server_requests_total{server="shop.example.com",class="5xx"} 10
nginx_server_requests_total{server="help.example.com",class="2xx"} 5
# TYPE nginx_server_request_duration_seconds histogram
nginx_server_request_duration_seconds_bucket{server="shop.example.com",le="0.005"} 55
nginx_server_request_duration_seconds_bucket{server="shop.example.com",le="10"} 108
nginx_server_request_duration_seconds_bucket{server="shop.example.com",le="+Inf"} 110
nginx_server_request_duration_seconds_sum{server="shop.example.com"} 1
nginx_server_request_duration_seconds_count{server="shop.example.com"} 110
`

// TestServers verifies the sums over the Pods of an instance, and the percentiles of the durations.
func TestServers(t *testing.T) {
	samples, err := parseServers(strings.NewReader(requestMetrics))
	if err != nil {
		t.Fatal(err)
	}
	loads := serverLoads([]model.Vector{samples, samples, nil})
	want := []*ServerLoad{
		{Server: "help.example.com", Requests: 10},
		{Server: "shop.example.com", Requests: 220, Errors: 20, ErrorPercent: 100 * 20.0 / 220, P50: "<=5ms", P99: ">10s"},
	}
	if diff := cmp.Diff(want, loads, cmpopts.IgnoreUnexported(ServerLoad{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, err := parseServers(strings.NewReader("<html>")); err == nil {
		t.Error("a page was parsed")
	}

	var out bytes.Buffer
	var format output
	if err := (&cli{IOStreams: genericiooptions.IOStreams{Out: &out}}).printServers(loads, &format); err != nil {
		t.Fatal(err)
	}
	const table = "SERVER             REQUESTS   ERRORS   ERRORS%   P50     P99\n" +
		"help.example.com   10         0        0.0               \n" +
		"shop.example.com   220        20       9.1       <=5ms   >10s\n"
	if diff := cmp.Diff(table, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
