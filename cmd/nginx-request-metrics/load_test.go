//go:build bench

package main

import (
	"flag"
	"net"
	"regexp"
	"runtime"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

var (
	perSecond = flag.Int("rate", 30_000, "messages per second")
	length    = flag.Duration("duration", 10*time.Second, "duration of the load")
)

// TestLoad measures the losses and the processor time of the program, while another process uses
// one core.
func TestLoad(t *testing.T) {
	program := start(t, "--listen=127.0.0.1:0", "--metrics-address=127.0.0.1:0")
	syslog, metrics := program.addresses(t)
	conn, err := net.Dial("udp4", syslog)
	if err != nil {
		t.Fatal(err)
	}

	done := atomic.Bool{}
	go func() {
		for !done.Load() {
			runtime.KeepAlive(conn)
		}
	}()
	datagram := []byte(header + "1|200|0.012|512|78|0.010|shop.example.com")
	sent, slowest, begin := 0, time.Duration(0), time.Now()
	for elapsed := time.Duration(0); elapsed < *length; elapsed = time.Since(begin) {
		for ; sent < int(elapsed.Seconds()*float64(*perSecond)); sent++ {
			before := time.Now()
			if _, err := conn.Write(datagram); err != nil {
				t.Fatal(err)
			}
			slowest = max(slowest, time.Since(before))
		}
		time.Sleep(time.Millisecond)
	}
	done.Store(true)

	var counted, lost float64
	eventually(t, "all messages", func() bool {
		_, text := getBody(t, "http://"+metrics+"/metrics")
		counted, lost = value(text, `nginx_server_requests_total\{class="2xx",server="shop.example.com"\}`),
			value(text, "nginx_request_metrics_lost_messages_total")
		return counted+lost == float64(sent)
	})
	program.end(t, syscall.SIGTERM)
	usage, _ := program.ProcessState.SysUsage().(*syscall.Rusage)
	used := program.ProcessState.UserTime() + program.ProcessState.SystemTime()
	t.Logf("%d messages at %d per second, %d processors: lost %v (%.3f %%), %v of processor time per message, "+
		"%.1f %% of a core, %d MiB at the peak, the slowest write took %v",
		sent, *perSecond, runtime.NumCPU(), lost, 100*lost/float64(sent), used/time.Duration(sent),
		100*used.Seconds()/length.Seconds(), usage.Maxrss>>10, slowest)
}

func value(text, metric string) float64 {
	found := regexp.MustCompile(`(?m)^` + metric + ` (\S+)$`).FindStringSubmatch(text)
	if found == nil {
		return 0
	}
	number, _ := strconv.ParseFloat(found[1], 64)
	return number
}
