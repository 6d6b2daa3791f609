// Command nginx-request-metrics counts the requests of nginx in its Pod by server and status class,
// and measures their duration. nginx sends a line for each request as syslog over UDP:
//
//	log_format NAME '1|$status|$request_time|$bytes_sent|$request_length|$upstream_response_time|$server_name';
//	access_log syslog:server=127.0.0.1:9514,facility=local7,tag=nginx_requests,nohostname NAME;
//
// /metrics has the metrics for Prometheus. /healthz returns 200 while the UDP port is open. Only
// SIGTERM and SIGINT end the program. Its version and dependencies are its own, so that an upgrade
// of the operator restarts no Pods unless this program changes.
package main

import (
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/net/netutil"
)

// Bounds of clients. Prometheus and the kubelet need two connections.
const (
	maxConnections = 32
	maxHeaderBytes = 8 << 10
	clientTimeout  = 5 * time.Second
	longestDelay   = 5 * time.Second
)

func main() {
	listen := flag.String("listen", "127.0.0.1:9514", "IPv4 loopback `address` of the UDP port for syslog messages of nginx")
	address := flag.String("metrics-address", ":9114", "TCP `address` of /metrics and /healthz")
	flag.Parse()
	if err := validate(*listen, *address, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "nginx-request-metrics:", err)
		os.Exit(2)
	}

	log, port := slog.New(slog.NewJSONHandler(os.Stderr, nil)), &socket{}
	metrics := newMetrics(port.lost)
	go repeat(log, "Cannot receive messages", func() error { return port.receive(log, *listen, metrics.record) })
	go repeat(log, "Cannot serve metrics", func() error { return serve(log, *address, handler(metrics.handler(), port)) })

	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, syscall.SIGINT)
	<-stop
}

func validate(listen, address string, more []string) error {
	if len(more) > 0 {
		return fmt.Errorf("unexpected argument %q: only flags are accepted, see --help", more[0])
	}
	if local, err := netip.ParseAddrPort(listen); err != nil || !local.Addr().Is4() || !local.Addr().IsLoopback() {
		return fmt.Errorf("--listen is %q, must be an IPv4 loopback address with a port, for example 127.0.0.1:9514", listen)
	}
	if _, err := net.ResolveTCPAddr("tcp", address); err != nil {
		return fmt.Errorf("--metrics-address is %q, must be host:port or :port: %w", address, err)
	}
	return nil
}

// handler serves the metrics and the health of the program.
func handler(metrics http.Handler, port *socket) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", metrics)
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		if port.Load() == nil {
			http.Error(w, "the UDP port is not open", http.StatusServiceUnavailable)
		}
	})
	return mux
}

func serve(log *slog.Logger, address string, handler http.Handler) error {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	server := &http.Server{
		Handler: handler, MaxHeaderBytes: maxHeaderBytes, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
		ReadTimeout: clientTimeout, WriteTimeout: 2 * clientTimeout, IdleTimeout: clientTimeout,
	}
	log.Info("Serving metrics", "address", listener.Addr().String())
	return server.Serve(netutil.LimitListener(listener, maxConnections))
}

// repeat calls a function that only an error ends, each time after a longer delay.
func repeat(log *slog.Logger, message string, call func() error) {
	for delay := 10 * time.Millisecond; ; delay = min(2*delay, longestDelay) {
		log.Error(message, "error", call(), "retryAfter", delay.String())
		time.Sleep(delay)
	}
}
