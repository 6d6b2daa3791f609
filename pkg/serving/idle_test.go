package serving

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/healthz"
)

// served is a port of the operator. Its request must succeed.
type served struct {
	secure  bool
	request func() error
}

// threePorts serves the operator's ports on this machine. The keys are the addresses.
func threePorts(t *testing.T) map[string]served {
	t.Helper()
	out := map[string]served{}
	allowed := func(next http.Handler) (http.Handler, error) { return next, nil }
	metrics, err := NewMetrics(allowed, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	if err != nil {
		t.Fatal(err)
	}
	ready := map[string]healthz.Checker{"ping": Cached(healthz.Ping)}
	for path, port := range map[string]Port{
		"https://%s/validate": newWebhooks(func(http.ResponseWriter, *http.Request) {}).port,
		"https://%s/metrics":  {Name: "metrics", TLS: certified(), Handler: metrics},
		"http://%s/readyz":    {Name: "probes", Handler: NewProbes(nil, ready)},
	} {
		_, address := serveLocally(t, port)
		out[address] = served{port.TLS != nil, func() error {
			client := clientAt(t, "127.0.0.1", false)
			client.Timeout = firstBytes / 2 // an idle connection ends later
			defer client.CloseIdleConnections()
			response, err := client.Get(fmt.Sprintf(path, address))
			if err != nil {
				return err
			}
			_ = response.Body.Close()
			if response.StatusCode == http.StatusLengthRequired || response.StatusCode == http.StatusOK {
				return nil
			}
			return fmt.Errorf("answered %s", response.Status)
		}}
	}
	return out
}

// TestIdleConnectionsShutNobodyOut opens 1,000 idle connections to each port, from one address or
// from eight. Each request of the kubelet, Prometheus, and the API server must still get an answer.
func TestIdleConnectionsShutNobodyOut(t *testing.T) {
	for _, addresses := range []int{1, 8} {
		t.Run(fmt.Sprintf("from %d", addresses), func(t *testing.T) {
			for address, port := range threePorts(t) {
				silence(t, address, addresses, 1000/addresses)
				for range 20 {
					if err := port.request(); err != nil {
						t.Errorf("%s: %v", address, err)
					}
				}
			}
		})
	}
}

// TestHalfOpenRequestsAreBounded sends an incomplete header on 450 connections to each port. These
// connections may use only little memory.
func TestHalfOpenRequestsAreBounded(t *testing.T) {
	const connections, most = 450, 128 << 20
	ports, before := threePorts(t), heapNow()
	header := "GET / HTTP/1.1\r\nHost: a\r\nX-Long: " + strings.Repeat("a", headerBytes-1000)
	for address, port := range ports {
		for i := range connections {
			conn := dial(t, fmt.Sprintf("127.0.3.%d", i%8+1), address, port.secure)
			if _, err := io.WriteString(conn, header); err != nil {
				t.Fatal(err)
			}
		}
	}
	// The value includes the memory of the clients.
	grown := heapNow() - before
	t.Logf("%d half-open requests take %d MiB", len(ports)*connections, grown>>20)
	if grown > most {
		t.Errorf("they may take %d MiB", most>>20)
	}
	for address, port := range ports {
		if err := port.request(); err != nil {
			t.Errorf("%s: %v", address, err)
		}
	}
}

// dial opens a connection from an address, over TLS if the port uses it.
func dial(t *testing.T, address, to string, secure bool) net.Conn {
	t.Helper()
	conn, err := from(address).Dial("tcp", to)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if !secure {
		return conn
	}
	return tls.Client(conn, &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // that of httptest
}
