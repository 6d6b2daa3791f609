//go:build bench

package bench

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/defaults"
	"github.com/example/nginx-operator/internal/health"
	"github.com/example/nginx-operator/internal/wellknown"
	"github.com/example/nginx-operator/test/harness"
)

const (
	// requestRate is the load in requests per second. Each of requestConnections sends a batch of
	// requests at each tick.
	requestRate        = 10_000
	requestConnections = 10
	requestTick        = 10 * time.Millisecond
	// maxLostPercent is the limit of requests that the receiver does not count.
	maxLostPercent = 0.1
)

// requestCost is what a request costs in a Pod.
type requestCost struct {
	nginx, receiver time.Duration
	lostPercent     float64
	// median and slow are the 50th and the 99th percentile of the time until a batch of requests has
	// all its responses.
	median, slow time.Duration
}

// TestRequestMetricsOnCluster compares an instance with request metrics, and the same instance
// without them: the processor time of a request, the response times, and the requests that the
// receiver does not count. Another process uses as much of the machine as it gets.
func TestRequestMetricsOnCluster(t *testing.T) {
	const rounds = 3
	e := newClusterEnvironment(t)
	namespace := e.newNamespace(t, "bench-requests")
	defer e.waitForDeletions(t)
	defer e.deleteNamespace(t, namespace)
	pods, specs := map[bool]*corev1.Pod{}, map[bool]*v1alpha2.NginxOperatorSpec{}
	for _, counts := range []bool{false, true} {
		object := newInstance(namespace, 0)
		object.Name = fmt.Sprintf("counts-%t", counts)
		object.Spec = v1alpha2.NginxOperatorSpec{
			Replicas: ptr.To[int32](1), Nginx: &v1alpha2.Nginx{AccessLog: ptr.To(false)}, Monitoring: &v1alpha2.Monitoring{},
			Config: &v1alpha2.Config{Inline: "server {\n    listen 8080;\n    server_name shop.example.com;\n" +
				"    keepalive_requests 100000000;\n    return 200 \"shop\\n\";\n}\n"},
		}
		if counts {
			object.Spec.Monitoring.RequestMetrics = &v1alpha2.RequestMetrics{}
		}
		must(t, e.admin.Create(t.Context(), object))
		pods[counts], specs[counts] = e.readyPod(t, object), &object.Spec
	}

	other := exec.CommandContext(t.Context(), "sh", "-c", "while :; do :; done")
	must(t, other.Start())
	defer func() { _, _ = other.Process.Kill(), other.Wait() }()
	costs := map[bool][]requestCost{}
	for range rounds {
		for _, counts := range []bool{false, true} {
			costs[counts] = append(costs[counts], e.measureRequests(t, pods[counts], specs[counts]))
		}
	}

	row := func(name string, value func(requestCost) float64, format string) string {
		line := "| " + name + " |"
		for _, counts := range []bool{false, true} {
			line += fmt.Sprintf(" "+format+" |", median(costs[counts], value))
		}
		return line + "\n"
	}
	microseconds := func(duration time.Duration) float64 { return float64(duration) / float64(time.Microsecond) }
	writePlace(t, "request-metrics", "| figure | without request metrics | with |\n|---|---|---|\n"+
		row("processor time of nginx per request", func(c requestCost) float64 { return microseconds(c.nginx) }, "%.1f µs")+
		row("processor time of the receiver per request", func(c requestCost) float64 { return microseconds(c.receiver) }, "%.1f µs")+
		row("median of the response time", func(c requestCost) float64 { return milliseconds(c.median) }, "%.2f ms")+
		row("99th percentile", func(c requestCost) float64 { return milliseconds(c.slow) }, "%.2f ms")+
		row("requests that are not counted", func(c requestCost) float64 { return c.lostPercent }, "%.3f %%"), false)
	for _, cost := range costs[true] {
		if cost.lostPercent >= maxLostPercent {
			t.Errorf("%.3f %% of the requests were not counted, want less than %v %%", cost.lostPercent, maxLostPercent)
		}
	}
}

// readyPod waits until the only Pod of an instance is ready.
func (e *environment) readyPod(t *testing.T, object *v1alpha2.NginxOperator) *corev1.Pod {
	t.Helper()
	pods := &corev1.PodList{}
	waitFor(t, clusterPatience, func() error {
		err := e.admin.List(t.Context(), pods, client.InNamespace(object.Namespace),
			client.MatchingLabels{wellknown.LabelInstance: object.Name})
		if err != nil || len(pods.Items) != 1 {
			return errors.Join(err, fmt.Errorf("there are %d Pods of %s", len(pods.Items), object.Name))
		}
		if !health.IsReady(&pods.Items[0]) {
			return fmt.Errorf("%s is not ready", pods.Items[0].Name)
		}
		return nil
	})
	return &pods.Items[0]
}

// measureRequests sends requests to a Pod for 20 seconds.
func (e *environment) measureRequests(t *testing.T, pod *corev1.Pod, spec *v1alpha2.NginxOperatorSpec) (cost requestCost) {
	t.Helper()
	const length = 20 * time.Second
	counts := spec.Monitoring.RequestMetrics != nil
	statuses := slices.Concat(pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses)
	used := func(name string) (sum time.Duration) {
		i := slices.IndexFunc(statuses, func(status corev1.ContainerStatus) bool { return status.Name == name })
		for _, pid := range withChildren(t, containerProcess(t, statuses[i].ContainerID)) {
			sum += processorTime(t, pid)
		}
		return sum
	}
	counted := func() (sum float64) {
		url := "http://" + net.JoinHostPort(pod.Status.PodIP, strconv.Itoa(int(defaults.RequestMetricsPort(spec))))
		_, text, err := harness.GetMetrics(t.Context(), url, "")
		must(t, err)
		for _, sample := range must1(harness.Samples(text, "nginx_server_requests_total"))(t) {
			sum += sample.Value
		}
		return sum
	}

	address := net.JoinHostPort(pod.Status.PodIP, "8080")
	must1(sendBatches(address, 1, 1))(t) // the receiver has no metric before the first request
	nginx, receiver, before := used(wellknown.OperandContainer), time.Duration(0), 0.0
	if counts {
		time.Sleep(time.Second)
		receiver, before = used(wellknown.RequestMetricsContainer), counted()
	}
	began, took := time.Now(), make([][]time.Duration, requestConnections)
	ticks := int(length / requestTick)
	batch := requestRate * int(requestTick/time.Millisecond) / 1000 / requestConnections
	inParallel(t, requestConnections, requestConnections, func(_ context.Context, i int) (err error) {
		took[i], err = sendBatches(address, ticks, batch)
		return err
	})
	requests := float64(requestConnections * ticks * batch)
	if elapsed := time.Since(began); elapsed > length+length/20 {
		t.Errorf("the requests took %s, so there were fewer than %d per second", elapsed, requestRate)
	}
	cost.nginx = (used(wellknown.OperandContainer) - nginx) / time.Duration(requests)
	if counts {
		time.Sleep(time.Second) // until the receiver has read the last messages
		cost.receiver = (used(wellknown.RequestMetricsContainer) - receiver) / time.Duration(requests)
		cost.lostPercent = 100 * (1 - (counted()-before)/requests)
	}
	all := slices.Sorted(slices.Values(slices.Concat(took...)))
	cost.median, cost.slow = percentile(all, 50), percentile(all, 99)
	t.Logf("with request metrics %t: %d requests: %+v", counts, int(requests), cost)
	return cost
}

// sendBatches sends a batch of pipelined requests at each tick over one connection. It returns the
// times until all responses of each batch had come.
func sendBatches(address string, ticks, batch int) ([]time.Duration, error) {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	requests := []byte(strings.Repeat("GET / HTTP/1.1\r\nHost: shop.example.com\r\n\r\n", batch))
	responses := bufio.NewReader(conn)
	took := make([]time.Duration, 0, ticks)
	for next := time.Now(); len(took) < ticks; next = next.Add(requestTick) {
		time.Sleep(time.Until(next))
		began := time.Now()
		if _, err := conn.Write(requests); err != nil {
			return nil, err
		}
		for range batch {
			response, err := http.ReadResponse(responses, nil)
			if err != nil {
				return nil, err
			}
			if _, err := io.Copy(io.Discard, response.Body); err != nil || response.StatusCode != http.StatusOK {
				return nil, errors.Join(err, fmt.Errorf("nginx answered %s", response.Status))
			}
		}
		took = append(took, time.Since(began))
	}
	return took, nil
}
