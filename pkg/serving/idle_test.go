package serving

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/healthz"
)

// threePorts serves the operator's ports on this machine, and returns a URL of each.
func threePorts(t *testing.T) (urls []*url.URL) {
	t.Helper()
	allowed := func(next http.Handler) (http.Handler, error) { return next, nil }
	metrics, err := NewMetrics(allowed, http.HandlerFunc(nobody))
	if err != nil {
		t.Fatal(err)
	}
	probes := NewProbes(nil, map[string]healthz.Checker{"ping": Cached(healthz.Ping)})
	for path, port := range map[string]Port{
		"/validate": newWebhooks(nobody).port,
		"/metrics":  {Name: "metrics", TLS: certified(), Turns: NewTurns(), Handler: metrics},
		"/readyz":   {Name: "probes", Turns: NewTurns(), Handler: probes},
	} {
		_, address := serveLocally(t, port)
		scheme := "https"
		if port.TLS == nil {
			scheme = "http"
		}
		urls = append(urls, &url.URL{Scheme: scheme, Host: address, Path: path})
	}
	return urls
}

// TestIdleConnectionsShutNobodyOut opens 1,000 idle connections to each port, from one address or
// from eight, or sends an incomplete header on 450. They use only little memory, and each request
// of the kubelet, Prometheus, and the API server gets an answer.
func TestIdleConnectionsShutNobodyOut(t *testing.T) {
	const most = 128 << 20
	header := "GET / HTTP/1.1\r\nHost: a\r\nX-Long: " + strings.Repeat("a", headerBytes-1000)
	for name, open := range map[string]func(*testing.T, *url.URL){
		"idle, from one address": func(t *testing.T, port *url.URL) { silence(t, port.Host, 1, 1000) },
		"idle, from eight":       func(t *testing.T, port *url.URL) { silence(t, port.Host, 8, 125) },
		"half-open": func(t *testing.T, port *url.URL) {
			for i := range 450 {
				conn := dial(t, fmt.Sprintf("127.0.3.%d", i%8+1), port)
				if _, err := io.WriteString(conn, header); err != nil {
					t.Fatal(err)
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			ports, before := threePorts(t), heapNow()
			for _, port := range ports {
				open(t, port)
			}
			if grown := heapNow() - before; grown > most { // with the memory of the clients
				t.Errorf("the connections take %d MiB", grown>>20)
			}
			for _, port := range ports {
				for range 20 {
					client := clientAt(t, "127.0.0.1", false)
					client.Timeout = firstBytes / 2 // an idle connection ends later
					response, err := client.Get(port.String())
					if err != nil {
						t.Fatal(err)
					}
					_ = response.Body.Close()
					client.CloseIdleConnections()
					if response.StatusCode != http.StatusOK {
						t.Errorf("%s answered %s", port, response.Status)
					}
				}
			}
		})
	}
}

// dial opens a connection from an address, over TLS if the port uses it.
func dial(t *testing.T, address string, to *url.URL) net.Conn {
	t.Helper()
	conn, err := from(address).Dial("tcp", to.Host)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if to.Scheme == "http" {
		return conn
	}
	return tls.Client(conn, insecure)
}
