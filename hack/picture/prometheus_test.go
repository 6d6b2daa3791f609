package main

import (
	"fmt"
	"hash/fnv"
	"math"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// dataEnd is when the data of the tests end; they are an hour, scraped every 15 seconds.
var dataEnd = time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)

const (
	scrapeInterval = 15 * time.Second
	scrapes        = int(time.Hour / scrapeInterval)
)

func must[T any](t *testing.T) func(T, error) T {
	return func(value T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

// tool returns the path of a program that `make` builds.
func tool(t *testing.T, name string) string {
	t.Helper()
	path := must[string](t)(filepath.Abs(filepath.Join("../../bin", name)))
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("%v: `make bin/%s` builds it", err, name)
	}
	return path
}

// startPrometheus starts a Prometheus that has the data of a fleet, and returns its URL.
func startPrometheus(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	data, input, config := filepath.Join(dir, "data"), filepath.Join(dir, "fleet.txt"), filepath.Join(dir, "prometheus.yaml")
	for file, text := range map[string]string{input: fleet(), config: "{}\n"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	//nolint:gosec // a tool of this repository
	backfill := exec.CommandContext(t.Context(), tool(t, "promtool"), "tsdb", "create-blocks-from", "openmetrics", input, data)
	if out, err := backfill.CombinedOutput(); err != nil {
		t.Fatalf("promtool: %v\n%s", err, out)
	}
	listener := must[net.Listener](t)(net.Listen("tcp", "127.0.0.1:0"))
	address := listener.Addr().String()
	_ = listener.Close()
	log := must[*os.File](t)(os.Create(filepath.Join(dir, "log"))) //nolint:gosec // a file of this test
	//nolint:gosec // a tool of this repository
	prometheus := exec.CommandContext(t.Context(), tool(t, "prometheus"), "--config.file="+config, "--storage.tsdb.path="+data,
		"--storage.tsdb.retention.time=100y", "--web.listen-address="+address, "--log.level=warn")
	prometheus.Stdout, prometheus.Stderr = log, log
	if err := prometheus.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = prometheus.Process.Kill()
		_ = prometheus.Wait()
		_ = log.Close()
	})
	for until := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		response, err := http.Get("http://" + address + "/-/ready") //nolint:gosec,noctx // an address of this test
		if err == nil {
			_ = response.Body.Close()
			if response.StatusCode == http.StatusOK {
				return "http://" + address
			}
		}
		if time.Now().After(until) {
			text, _ := os.ReadFile(log.Name())
			t.Fatalf("Prometheus is not ready: %v\n%s", err, text)
		}
	}
}

// pod is a Pod of the fleet, and how many requests it serves in a second.
type pod struct {
	namespace, instance, name string
	load                      float64
}

// pods returns those of twelve instances.
func pods() []pod {
	var out []pod
	instances := []string{"web", "api", "shop", "blog", "docs", "search", "static", "images", "login", "status", "mail", "registry"}
	for i, instance := range instances {
		namespace := []string{"shop", "intranet"}[i%2]
		for replica := range 3 - i%3 {
			name := fmt.Sprintf("%s-%08x-%05x", instance, noise(instance)%math.MaxUint32, noise(instance, replica)&0xfffff)
			out = append(out, pod{namespace, instance, name, 240 / float64(i+2)})
		}
	}
	return out
}

// noise is a number that depends on its arguments and on nothing else.
func noise(of ...any) uint64 {
	hash := fnv.New64a()
	_, _ = fmt.Fprint(hash, of...)
	return hash.Sum64()
}

// fleet returns what the fleet and the operator report, as OpenMetrics. Halfway, the nginx of the first Pod does not answer for five
// minutes, and then drops connections.
func fleet() string {
	var out strings.Builder
	for i, p := range pods() {
		labels := fmt.Sprintf("namespace=%q,app_kubernetes_io_instance=%q,pod=%q", p.namespace, p.instance, p.name)
		down := func(scrape int) bool { return i == 0 && scrape >= scrapes/2 && scrape < scrapes/2+20 }
		connections := p.load / 3
		load := func(scrape int) float64 {
			return p.load * (1 + 0.3*math.Sin(float64(scrape)/30+float64(i)) + 0.1*float64(noise(p.name, scrape)%100)/100)
		}
		write(&out, "nginx_up", labels, func(scrape int) float64 {
			if down(scrape) {
				return 0
			}
			return 1
		})
		requests, accepted, handled := 0.0, 0.0, 0.0
		write(&out, "nginx_http_requests_total", labels, func(scrape int) float64 {
			requests += math.Round(load(scrape) * scrapeInterval.Seconds())
			return unless(down(scrape), requests)
		})
		write(&out, "nginx_connections_accepted", labels, func(scrape int) float64 {
			accepted += math.Round(load(scrape) / 4 * scrapeInterval.Seconds())
			return unless(down(scrape), accepted)
		})
		write(&out, "nginx_connections_handled", labels, func(scrape int) float64 {
			handled += math.Round(load(scrape) / 4 * scrapeInterval.Seconds())
			if i == 0 && scrape > scrapes/2+20 && scrape < scrapes/2+60 {
				handled -= 3
			}
			return unless(down(scrape), handled)
		})
		for state, share := range map[string]float64{"active": 1, "reading": 0.02, "writing": 0.28, "waiting": 0.7} {
			write(&out, "nginx_connections_"+state, labels, func(scrape int) float64 {
				return unless(down(scrape), math.Round(connections*share*load(scrape)/p.load))
			})
		}
	}
	fleetOfOperator(&out)
	return out.String() + "# EOF\n"
}

// fleetOfOperator writes what the operator reports.
func fleetOfOperator(out *strings.Builder) {
	late := func(value, other float64) func(int) float64 {
		return func(scrape int) float64 {
			if scrape > scrapes/2 && scrape < scrapes*3/4 {
				return other
			}
			return value
		}
	}
	for name, value := range map[string]func(int) float64{
		`nginx_operator_objects{ready="True"}`: late(12, 10), `nginx_operator_objects{ready="False"}`: late(0, 2),
		`nginx_operator_objects{ready="Unknown"}`:             late(0, 0),
		`nginx_operator_blocked_objects{reason="RolledBack"}`: late(0, 1), `nginx_operator_blocked_objects{reason="Paused"}`: late(1, 1),
		`nginx_operator_blocked_objects{reason="ImagePullFailed"}`: late(0, 1),
		`nginx_operator_certificates{left="more"}`:                 late(9, 9), `nginx_operator_certificates{left="30d"}`: late(3, 4),
		`nginx_operator_certificates{left="7d"}`: late(1, 0), `nginx_operator_certificates{left="expired"}`: late(0, 0),
	} {
		metric, labels, _ := strings.Cut(strings.TrimSuffix(name, "}"), "{")
		write(out, metric, labels+`,job="nginx-operator",namespace="nginx-operator-system",instance="10.0.0.1:8443"`, value)
	}
}

// unless returns a value, or none.
func unless(missing bool, value float64) float64 {
	if missing {
		return math.NaN()
	}
	return value
}

// write writes the samples of a series. None is written where the value is none.
func write(out *strings.Builder, metric, labels string, value func(scrape int) float64) {
	for scrape := range scrapes {
		at := dataEnd.Add(-time.Hour + time.Duration(scrape+1)*scrapeInterval)
		if v := value(scrape); !math.IsNaN(v) {
			fmt.Fprintf(out, "%s{%s} %g %d\n", metric, labels, v, at.Unix())
		}
	}
}
