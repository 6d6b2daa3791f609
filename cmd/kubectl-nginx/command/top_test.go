package command

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
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
