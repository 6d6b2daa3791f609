package main

import (
	"log/slog"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// open returns an open port whose datagrams go to record, and a connection to it.
func open(t *testing.T, record func([]byte)) (*socket, net.Conn) {
	t.Helper()
	port := &socket{}
	go func() { _ = port.receive(slog.New(slog.DiscardHandler), "127.0.0.1:0", record) }()
	eventually(t, "the port to open", func() bool { return port.Load() != nil })
	conn, err := net.Dial("udp4", port.Load().LocalAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = conn.Close(), port.Load().Close() })
	return port, conn
}

func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !condition(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited for %s", what)
		}
	}
}

func send(t *testing.T, conn net.Conn, datagram []byte) {
	t.Helper()
	if _, err := conn.Write(datagram); err != nil {
		t.Fatal(err)
	}
}

// TestLossesAreCounted fills the buffer while the program reads nothing.
func TestLossesAreCounted(t *testing.T) {
	const sent = 30_000
	resume, received := make(chan struct{}), atomic.Int64{}
	port, conn := open(t, func([]byte) { <-resume; received.Add(1) })
	datagram := []byte(strings.Repeat("x", 1024))
	for range sent {
		send(t, conn, datagram)
	}
	lost := port.lost()
	if lost == 0 || lost >= sent {
		t.Errorf("lost %v of %d", lost, sent)
	}
	close(resume)
	eventually(t, "all other datagrams", func() bool { return float64(received.Load())+port.lost() == sent })
}

// TestNothingIsLost sends no more than fits into the smallest buffer, until all of it is counted.
func TestNothingIsLost(t *testing.T) {
	const window, windows = 100, 300
	received, metrics := atomic.Int64{}, newMetrics(withoutLosses)
	port, conn := open(t, func(datagram []byte) { metrics.record(datagram); received.Add(1) })
	for i := range windows {
		for range window {
			send(t, conn, []byte(header+"1|200|0.012|512|78|0.010|shop"))
		}
		eventually(t, "the window", func() bool { return received.Load() == int64(window*(i+1)) })
	}
	if lost := port.lost(); lost != 0 {
		t.Errorf("lost %v", lost)
	}
	requireLines(t, scrape(t, metrics.handler()), `nginx_server_requests_total{class="2xx",server="shop"} 30000`)
}
