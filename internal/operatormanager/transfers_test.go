package operatormanager

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

// Clients that hold nearly all memory and neither send their bodies nor read their answers make room for one that does: the slowest first,
// and no more of them than it takes. Nobody has to while there is room.
func TestSlowClientsMakeRoom(t *testing.T) {
	for name, test := range map[string]struct {
		// path and sent are what each of the slow ones asks for, and how much of its body it sends.
		path string
		sent int
	}{
		"send no body":    {path: "/validate"},
		"send most of it": {path: "/validate", sent: largestAdmission - 1},
		"read no answer":  {path: "/validate?large", sent: largestAdmission},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := newServer(func(w http.ResponseWriter, r *http.Request) {
					if r.URL.RawQuery == "large" {
						_, _ = w.Write(make([]byte, 8<<20))
					}
				})
				listener, ended := make(pipes), make(chan error, 1)
				ctx, stop := context.WithCancel(t.Context())
				go func() { ended <- server.serve(ctx, newConnections(listener)) }()
				// connect returns the client's side of a connection that sends the beginning of a request.
				connect := func(address, path string, sent int) *tls.Conn {
					ours, theirs := net.Pipe()
					listener <- &addressed{Conn: theirs, address: address}
					secured := tls.Client(ours, &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12}) //nolint:gosec // that of httptest
					write(fmt.Sprintf("POST %s HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n", path, largestAdmission))(t, secured)
					write(string(bytes.Repeat([]byte(" "), sent)))(t, secured)
					return secured
				}
				slow := []*tls.Conn{connect("192.0.2.1:1", test.path, test.sent)}
				time.Sleep(slowTransfer / 2)
				slow = append(slow, connect("192.0.2.2:1", test.path, test.sent))
				synctest.Wait()

				began := time.Now()
				quick := connect("192.0.2.3:1", "/validate", largestAdmission)
				response, err := http.ReadResponse(bufio.NewReader(quick), nil)
				if err != nil || response.StatusCode != http.StatusOK {
					t.Fatalf("%v, %v", response, err)
				}
				if took := time.Since(began); took < slowTransfer/2-lookAgain || took > slowTransfer/2+2*lookAgain {
					t.Errorf("answered after %s", took)
				}
				if n := count(&server.requests.slow); n != 1 {
					t.Errorf("%d slow clients are left, want the second", n)
				}
				for _, conn := range append(slow, quick) {
					_ = conn.NetConn().Close()
				}
				close(listener)
				stop()
				<-ended
				// net/http keeps a connection that it has answered open for half a second more.
				time.Sleep(time.Second)
				if count(&server.requests.slow) > 0 || !server.requests.all.TryAcquire(bytesInFlight) {
					t.Error("something is still held")
				}
			})
		})
	}
}

// count returns how many transfers there are.
func count(t *transfers) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.all)
}
