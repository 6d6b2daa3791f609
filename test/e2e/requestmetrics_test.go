package e2e

// monitoring.requestMetrics with real requests.
//
//   - The counts of each server are exact. No label has a path, a host, or an address of a client, and
//     kubectl nginx top shows the error ratio.
//   - Nightly: no request fails or waits while the receiver is ended three times at 1,000 requests per
//     second, and the requests that it missed are known. nginx's log has the documented lines, and the
//     status does not take them for a failure.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/defaults"
	"github.com/example/nginx-operator/internal/wellknown"
	"github.com/example/nginx-operator/test/harness"
	"github.com/example/nginx-operator/test/harness/repeat"
)

const measuredServers = `server {
    listen 8080;
    server_name shop.example.com;
    location = /fail { return 503; }
    location / { return 200 "shop\n"; }
}
server {
    listen 8080;
    server_name help.example.com;
    return 200 "help\n";
}
`

// newMeasured creates an instance with request metrics, and returns it with its only Pod.
func newMeasured(t *testing.T, logsRequests bool) (*v1alpha2.NginxOperator, *corev1.Pod) {
	t.Helper()
	object := newObject(newNamespace(t, restricted), "c47-observed", 1)
	object.Spec.Config = &v1alpha2.Config{Inline: measuredServers}
	object.Spec.Monitoring = &v1alpha2.Monitoring{RequestMetrics: &v1alpha2.RequestMetrics{}}
	object.Spec.Nginx = &v1alpha2.Nginx{AccessLog: &logsRequests}
	must(t, suite.admin.Create(t.Context(), object))
	waitForReady(t, object)
	pods, err := podsOf(t.Context(), object)
	must(t, err)
	if len(pods) != 1 {
		t.Fatalf("there are %d Pods", len(pods))
	}
	return object, &pods[0]
}

func testRequestMetrics(t *testing.T) {
	object, pod := newMeasured(t, true)
	client := harness.Must1(suite.reach.client(true))(t)
	url := suite.reach.pod(pod, 8080)
	request := func(host, path string, status int) {
		t.Helper()
		must(t, requestStatus(t.Context(), client, url+path, host, status))
	}
	for range 100 {
		request("shop.example.com", "", http.StatusOK)
	}
	for range 10 {
		request("shop.example.com", "fail", http.StatusServiceUnavailable)
	}
	for range 5 {
		request("help.example.com", "", http.StatusOK)
	}
	for range 50 { // the first server of the port answers them
		request(fmt.Sprintf("h%d.attacker.test", rand.Uint32()), fmt.Sprintf("p%d", rand.Uint32()), http.StatusOK) //nolint:gosec // no secret
	}

	metrics := ""
	waitFor(t, object.Namespace, "the counts of the requests", patience, func(ctx context.Context) (err error) {
		metrics, err = metricsOfRequests(ctx, object, pod)
		return errors.Join(err, haveCounts(metrics, map[string]float64{
			"shop.example.com 2xx": 150, "shop.example.com 5xx": 10, "help.example.com 2xx": 5,
		}))
	})
	for _, text := range []string{"attacker", "/p", "/fail", pod.Status.PodIP} {
		if strings.Contains(metrics, text) {
			t.Errorf("the metrics contain %q", text)
		}
	}

	var top struct {
		Items []struct {
			Server           string
			Requests, Errors int64
			ErrorPercent     float64
		}
	}
	must(t, json.Unmarshal([]byte(kubectl(t, "nginx", "top", object.Name, "-n", object.Namespace, "--servers", "-o", "json")), &top))
	if len(top.Items) != 2 || top.Items[1].Server != "shop.example.com" || top.Items[1].Errors != 10 || top.Items[1].ErrorPercent != 6.25 {
		t.Errorf("top shows %+v", top.Items)
	}
	t.Log(kubectl(t, "nginx", "top", object.Name, "-n", object.Namespace, "--servers"))
}

// haveCounts requires the counts of servers and status classes, and that all others are 0.
func haveCounts(metrics string, want map[string]float64) error {
	samples, err := harness.Samples(metrics, "nginx_server_requests_total")
	if err != nil {
		return err
	}

	counted := 0
	for _, sample := range samples {
		key := sample.Labels["server"] + " " + sample.Labels["class"]
		if sample.Value != want[key] {
			err = errors.Join(err, fmt.Errorf("%s has %v requests, want %v", key, sample.Value, want[key]))
		}
		if sample.Value > 0 {
			counted++
		}
	}
	if counted != len(want) {
		err = errors.Join(err, fmt.Errorf("%d servers and classes have requests, want %d", counted, len(want)))
	}
	return err
}

func metricsOfRequests(ctx context.Context, object *v1alpha2.NginxOperator, pod *corev1.Pod) (string, error) {
	url := strings.TrimSuffix(suite.reach.pod(pod, defaults.RequestMetricsPort(&object.Spec)), "/")
	code, metrics, err := harness.GetMetrics(ctx, url, "")
	if err == nil && code != http.StatusOK {
		err = fmt.Errorf("the receiver answers %d", code)
	}
	return metrics, err
}

func requestStatus(ctx context.Context, client *http.Client, url, host string, status int) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	request.Host = host
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	if _, err := readText(response); err != nil {
		return err
	}
	if response.StatusCode != status {
		return fmt.Errorf("%s of %s answers %d, want %d", url, host, response.StatusCode, status)
	}
	return nil
}

// testRequestMetricsLosses requests the Pod itself: with one replica, the Service has no endpoint
// while the receiver does not run.
func testRequestMetricsLosses(t *testing.T) {
	const clients, pause, most = 10, 4 * time.Millisecond, time.Second
	object, pod := newMeasured(t, false)
	url := suite.reach.pod(pod, 8080)
	var slowest atomic.Int64
	var calls []func(context.Context, int) error
	for range clients {
		client := harness.Must1(suite.reach.client(true))(t)
		calls = append(calls, func(ctx context.Context, _ int) error {
			began := time.Now()
			err := requestStatus(ctx, client, url, "shop.example.com", http.StatusOK)
			slowest.Store(max(slowest.Load(), int64(time.Since(began))))
			return err
		})
	}

	began := time.Now()
	load := repeat.Start(t.Context(), pause, calls...)
	counted := 0.0
	for ended := range int32(3) {
		time.Sleep(5 * time.Second) // of load
		counted += countedRequests(t, object, pod)
		killContainer(t, pod, wellknown.RequestMetricsContainer)
		waitFor(t, object.Namespace, "another receiver", patience, func(ctx context.Context) error {
			pods, err := podsOf(ctx, object)
			if err != nil || len(pods) != 1 {
				return errors.Join(err, fmt.Errorf("there are %d Pods", len(pods)))
			}
			pod = &pods[0]
			if status := statusOf(pod, wellknown.RequestMetricsContainer); status.RestartCount <= ended || !ptr.Deref(status.Started, false) {
				return fmt.Errorf("restarted %d times: %+v", status.RestartCount, status.State)
			}
			return nil
		})
		if ended == 0 {
			logsLosses(t, pod)
		}
	}
	time.Sleep(5 * time.Second)
	counts, took := load.Stop(), time.Since(began)
	time.Sleep(time.Second) // until the receiver has read the last messages
	counted += countedRequests(t, object, pod)

	rate, wait := float64(counts.Total)/took.Seconds(), time.Duration(slowest.Load())
	t.Logf("FIGURE request metrics: %d requests at %.0f per second while the receiver ended 3 times: %d failed, the slowest took %s, "+
		"%.1f %% were not counted", counts.Total, rate, counts.Failed, seconds(wait), 100*(1-counted/float64(counts.Total)))
	if counts.Failed > 0 || wait > most || rate < 1000 {
		t.Errorf("%d requests at %.0f per second: %d failed, the first one: %v; the slowest took %s",
			counts.Total, rate, counts.Failed, counts.First, wait)
	}

	// The exporter has the number of all requests, with those that the receiver missed.
	code, text, err := harness.GetMetrics(t.Context(), strings.TrimSuffix(suite.reach.pod(pod, defaults.MetricsPort(&object.Spec)), "/"), "")
	must(t, err)
	all, err := harness.Samples(text, "nginx_http_requests_total")
	must(t, err)
	probes := 2*took.Seconds() + 60
	if total := float64(counts.Total); code != http.StatusOK || all[0].Value < total || all[0].Value > total+probes || counted >= total {
		t.Errorf("status %d: nginx has %v requests, the receivers have counted %v, the clients made %v", code, all[0].Value, counted, total)
	}

	waitForReady(t, object)
	if strings.Contains(fmt.Sprint(object.Status.Conditions, object.Status.BlockedBy), "syslog") {
		t.Errorf("the status has nginx's lines about syslog: %+v", object.Status.Conditions)
	}
}

// logsLosses requires the lines of nginx about a receiver that does not run, which the runbook has.
func logsLosses(t *testing.T, pod *corev1.Pod) {
	t.Helper()
	log := kubectl(t, "-n", pod.Namespace, "logs", pod.Name, "-c", wellknown.OperandContainer, "--tail=1000")
	for _, line := range []string{
		"send() failed (111: Connection refused) while logging to syslog, server: 127.0.0.1:9514",
		"send() to syslog failed while logging request",
	} {
		if !strings.Contains(log, line) {
			t.Errorf("nginx has not logged %q, but\n%.1000s", line, log)
		}
	}
}

// countedRequests returns the number of requests that a receiver has counted.
func countedRequests(t *testing.T, object *v1alpha2.NginxOperator, pod *corev1.Pod) (sum float64) {
	t.Helper()
	metrics, err := metricsOfRequests(t.Context(), object, pod)
	must(t, err)
	samples, err := harness.Samples(metrics, "nginx_server_requests_total")
	must(t, err)
	for _, sample := range samples {
		sum += sample.Value
	}
	return sum
}

// statusOf returns the status of a container of a Pod, or an empty one.
func statusOf(pod *corev1.Pod, container string) corev1.ContainerStatus {
	for _, status := range append(pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses...) {
		if status.Name == container {
			return status
		}
	}
	return corev1.ContainerStatus{}
}
