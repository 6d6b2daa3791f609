package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"runtime"
	"strings"
	"testing"
)

// scrape returns the metrics as Prometheus reads them, without comments.
func scrape(t *testing.T, handler http.Handler) string {
	t.Helper()
	response := httptest.NewRecorder()
	handler.ServeHTTP(response, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if response.Code != http.StatusOK {
		t.Fatalf("%d: %s", response.Code, response.Body)
	}
	return regexp.MustCompile(`(?m)^#.*\n`).ReplaceAllString(response.Body.String(), "")
}

// requireLines checks that a text has all lines.
func requireLines(t *testing.T, text string, lines ...string) {
	t.Helper()
	for _, line := range lines {
		if !strings.Contains("\n"+text, "\n"+line+"\n") {
			t.Errorf("no line %q in:\n%s", line, text)
		}
	}
}

func withoutLosses() float64 { return 0 }

func TestRecord(t *testing.T) {
	metrics := newMetrics(func() float64 { return 7 })
	for _, fields := range []string{
		"1|200|0.004|100|10|-|shop", "1|204|0.010|100|10|0.003|shop", "1|503|20.000|100|10|4.000, 6.000 : 9.500|shop",
		"1|000|0.000|0|0|-|shop", "1|700|0.000|0|0|-|shop", "1|301|0.000|1|1|-|", "3|broken", `1|200|0.000|1|1|-|\xD1\x82\xFF`,
	} {
		metrics.record([]byte(header + fields))
	}
	text := scrape(t, metrics.handler())
	if strings.Contains(text, `server="other"`) {
		t.Errorf("a server beyond the bounds, of\n%s", text)
	}
	requireLines(t, text,
		`nginx_server_requests_total{class="2xx",server="shop"} 2`,
		`nginx_server_requests_total{class="3xx",server="shop"} 0`,
		`nginx_server_requests_total{class="5xx",server="shop"} 1`,
		`nginx_server_requests_total{class="other",server="shop"} 2`,
		`nginx_server_requests_total{class="3xx",server="_"} 1`,
		`nginx_server_requests_total{class="2xx",server="т?"} 1`,
		`nginx_server_request_duration_seconds_bucket{server="shop",le="0.005"} 3`,
		`nginx_server_request_duration_seconds_bucket{server="shop",le="0.01"} 4`,
		`nginx_server_request_duration_seconds_bucket{server="shop",le="10"} 4`,
		`nginx_server_request_duration_seconds_bucket{server="shop",le="+Inf"} 5`,
		`nginx_server_request_duration_seconds_sum{server="shop"} 20.014`,
		`nginx_server_upstream_duration_seconds_count{server="shop"} 2`,
		`nginx_server_upstream_duration_seconds_sum{server="shop"} 19.503`,
		`nginx_server_sent_bytes_total{server="shop"} 300`,
		`nginx_server_received_bytes_total{server="shop"} 30`,
		`nginx_request_metrics_invalid_messages_total 1`,
		`nginx_request_metrics_lost_messages_total 7`,
	)
}

// TestLimit checks that the number of series stays below 5,000, and that names beyond the limit are
// counted together and need no memory.
func TestLimit(t *testing.T) {
	metrics := newMetrics(withoutLosses)
	long := strings.Repeat("n", maxServerName)
	message := func(server string) []byte { return []byte(header + "1|200|0.004|100|10|0.001|" + server) }
	metrics.record(message(long + "x"))
	metrics.record(message(long))
	for i := range 10 * maxServers {
		metrics.record(message(fmt.Sprintf("server-%d", i)))
	}
	text := scrape(t, metrics.handler())
	servers := map[string]bool{}
	for _, server := range regexp.MustCompile(`server="([^"]*)"`).FindAllStringSubmatch(text, -1) {
		servers[server[1]] = true
	}
	if series := strings.Count(text, "\n"); series > 5000 || len(servers) != maxServers+1 || !servers[long] {
		t.Errorf("%d series of %d servers", series, len(servers))
	}
	requireLines(t, text, fmt.Sprintf(`nginx_server_requests_total{class="2xx",server="other"} %d`, 1+10*maxServers-(maxServers-1)))

	datagrams := [][]byte{message("server-1"), message("server-999"), message(long + "xy"), []byte("nothing")}
	allocated := testing.AllocsPerRun(100, func() {
		for _, datagram := range datagrams {
			metrics.record(datagram)
		}
	})
	if allocated != 0 {
		t.Errorf("%v allocations", allocated)
	}
}

// TestMemory checks that a scrape at the limit needs little memory, however many clients there are.
func TestMemory(t *testing.T) {
	metrics := newMetrics(withoutLosses)
	for i := range maxServers {
		name := fmt.Sprintf("%03d%s", i, strings.Repeat("n", maxServerName-3))
		metrics.record([]byte(header + "1|200|0.004|100|10|0.001|" + name))
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	size := len(scrape(t, metrics.handler()))
	runtime.ReadMemStats(&after)
	t.Logf("%d bytes of text", size)
	if allocated := after.TotalAlloc - before.TotalAlloc; allocated > 16<<20 {
		t.Errorf("a scrape allocates %d bytes", allocated)
	}
}

func BenchmarkRecord(b *testing.B) {
	metrics := newMetrics(withoutLosses)
	datagram := []byte(header + "1|200|0.012|512|78|0.010, 0.002|shop.example.com")
	b.ReportAllocs()
	for b.Loop() {
		metrics.record(datagram)
	}
}
