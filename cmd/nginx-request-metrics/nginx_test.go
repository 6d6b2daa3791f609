package main

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

const nginxConf = `daemon off;
pid DIR/nginx.pid;
error_log DIR/error.log;
worker_processes 1;
events {}
http {
    client_body_temp_path DIR/body;
    proxy_temp_path DIR/proxy;
    fastcgi_temp_path DIR/fastcgi;
    uwsgi_temp_path DIR/uwsgi;
    scgi_temp_path DIR/scgi;
    log_format requests '1|$status|$request_time|$bytes_sent|$request_length|$upstream_response_time|$server_name';
    access_log syslog:server=SYSLOG,facility=local7,tag=nginx_requests,nohostname requests;
    upstream down { server 127.0.0.1:1; server 127.0.0.1:2; }
    server {
        listen ADDRESS;
        server_name shop.example.com;
        location = /fail { return 503; }
        location = /down { proxy_pass http://down; }
        location = /up { proxy_pass http://ADDRESS/; proxy_set_header Host help.example.com; }
        location / { return 200 "shop\n"; }
    }
    server { listen ADDRESS; server_name help.example.com; return 200 "help\n"; }
    server { listen ADDRESS; server_name "~^(a|b)[0-9]{1,2}\.(тест|test)$"; return 200 "pattern\n"; }
}
`

// TestNginx counts requests of a real nginx. The variable NGINX_PROGRAM is the path of the program, unless
// it is in PATH. The end-to-end tests count requests of the nginx of the cluster.
func TestNginx(t *testing.T) {
	nginx := os.Getenv("NGINX_PROGRAM")
	if nginx == "" {
		found, err := exec.LookPath("nginx")
		if err != nil {
			t.Skip("nginx is not installed: set NGINX_PROGRAM to its path")
		}
		nginx = found
	}
	program := start(t, "--listen=127.0.0.1:0", "--metrics-address=127.0.0.1:0")
	syslog, metrics := program.addresses(t)
	address := startNginx(t, nginx, syslog)

	get := func(count int, host, path string) {
		for range count {
			request, _ := http.NewRequest(http.MethodGet, "http://"+address+path, nil)
			request.Host = host
			response, err := http.DefaultClient.Do(request)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, response.Body)
			_ = response.Body.Close()
		}
	}
	get(100, "shop.example.com", "/")
	get(10, "shop.example.com", "/fail")
	get(5, "help.example.com", "/")
	for range 50 {
		get(1, fmt.Sprintf("random-%d.example", rand.Int()), fmt.Sprintf("/random/%d", rand.Int())) //nolint:gosec // no secret
	}
	get(1, "shop.example.com", "/down")
	get(1, "shop.example.com", "/up")
	get(3, "a1.test", "/")

	var text string
	eventually(t, "all requests", func() bool {
		text = scrape(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, body := getBody(t, "http://"+metrics+"/metrics")
			_, _ = io.WriteString(w, body)
		}))
		return strings.Contains(text, `nginx_server_requests_total{class="2xx",server="~^(a|b)[0-9]{1,2}\\.(тест|test)$"} 3`)
	})
	requireLines(t, text,
		`nginx_server_requests_total{class="2xx",server="shop.example.com"} 151`,
		`nginx_server_requests_total{class="5xx",server="shop.example.com"} 11`,
		`nginx_server_requests_total{class="2xx",server="help.example.com"} 6`,
		`nginx_server_upstream_duration_seconds_count{server="shop.example.com"} 2`,
		`nginx_server_request_duration_seconds_count{server="shop.example.com"} 162`,
		`nginx_request_metrics_invalid_messages_total 0`,
		`nginx_request_metrics_lost_messages_total 0`,
	)
	for _, client := range []string{"random", "/fail", "127.0.0.1"} {
		if strings.Contains(text, client) {
			t.Errorf("the metrics contain %q:\n%s", client, text)
		}
	}
	program.end(t, syscall.SIGTERM)
}

// startNginx starts nginx with the receiver as its log, and returns its address.
func startNginx(t *testing.T, program, syslog string) string {
	t.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	_ = free.Close()
	dir := t.TempDir()
	conf := filepath.Join(dir, "nginx.conf")
	text := strings.NewReplacer("DIR", dir, "SYSLOG", syslog, "ADDRESS", address).Replace(nginxConf)
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	nginx := exec.CommandContext(t.Context(), program, "-c", conf, "-e", filepath.Join(dir, "error.log")) // #nosec G204 G702 -- this test
	nginx.Stderr = t.Output()
	nginx.Cancel = func() error { return nginx.Process.Signal(syscall.SIGTERM) }
	if err := nginx.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = nginx.Wait() })
	eventually(t, "nginx", func() bool {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	})
	return address
}
