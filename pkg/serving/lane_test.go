package serving

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestSlowClientsMakeRoom verifies that clients that reserve nearly all memory, and neither send
// their bodies nor read their answers, are disconnected, so that another client gets memory.
func TestSlowClientsMakeRoom(t *testing.T) {
	// announced is the length of a body. The memory suffices for two such bodies.
	const announced = largestAdmission * 3 / 7
	for name, test := range map[string]struct {
		// path is the path of the slow requests. sent is the number of body bytes that they send.
		path string
		sent int
	}{
		"send the beginning": {path: "/validate", sent: small},
		"send most of it":    {path: "/validate", sent: announced - 1},
		"read no answer":     {path: "/validate?large", sent: announced},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				webhooks := newWebhooks(func(w http.ResponseWriter, r *http.Request) {
					_, _ = io.Copy(io.Discard, r.Body)
					if r.URL.RawQuery == "large" {
						_, _ = w.Write(make([]byte, 8<<20))
					}
				})
				dial, stop := piped(t, webhooks)
				// connect returns the client's side of a connection on which it has sent the start
				// of a request.
				connect := func(address, path string, sent int) *tls.Conn {
					secured := dial(address)
					write(fmt.Sprintf("POST %s HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n", path, announced))(t, secured)
					write(string(bytes.Repeat([]byte(" "), sent)))(t, secured)
					return secured
				}
				connect("192.0.2.1:1", test.path, test.sent)
				time.Sleep(transferGrace / 2)
				connect("192.0.2.2:1", test.path, test.sent)
				synctest.Wait()

				began := time.Now()
				quick := connect("192.0.2.3:1", "/validate", announced)
				response, err := http.ReadResponse(bufio.NewReader(quick), nil)
				if err != nil || response.StatusCode != http.StatusOK {
					t.Fatalf("%v, %v", response, err)
				}
				early := transferGrace/2 + lookAgain + time.Duration(test.sent)*time.Second/transferRate
				if took := time.Since(began); took > early {
					t.Errorf("answered after %s", took)
				}
				time.Sleep(transferGrace)
				if webhooks.admission.memory.TryAcquire(decoded * largestAdmission) {
					t.Error("a slow client is disconnected although no review waits")
				}
				release, err := webhooks.admission.acquire(t.Context(), "192.0.2.4", decoded*largestAdmission)
				if err != nil {
					t.Fatalf("a slow client still has memory: %v", err)
				}
				release()
				stop()
			})
		})
	}
}

// TestSteadyClientsAreServed verifies that a client as fast as transferRate is answered, although
// its transfer takes longer than transferGrace, and the handler even longer. The end of the
// transfer does not cancel the request.
func TestSteadyClientsAreServed(t *testing.T) {
	for _, length := range []int{1, small + 1, 20 << 20} {
		t.Run(fmt.Sprint(length), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				webhooks := newWebhooks(func(w http.ResponseWriter, r *http.Request) {
					time.Sleep(2 * transferGrace)
					if n, err := io.Copy(io.Discard, r.Body); n != int64(length) || err != nil {
						t.Errorf("the handler read %d bytes: %v", n, err)
					}
					time.Sleep(2 * transferGrace)
					if r.Context().Err() != nil {
						w.WriteHeader(http.StatusInternalServerError)
					}
				})
				dial, stop := piped(t, webhooks)
				client := dial("192.0.2.1:1")
				header := "POST /convert HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n"
				write(fmt.Sprintf(header, length))(t, client)
				for left := length; left > 0; left -= small {
					write(string(make([]byte, min(left, small))))(t, client)
					time.Sleep(small * time.Second / transferRate)
				}
				response, err := http.ReadResponse(bufio.NewReader(client), nil)
				if err != nil || response.StatusCode != http.StatusOK {
					t.Errorf("%+v, %v", response, err)
				}
				stop()
			})
		})
	}
}

// piped serves webhooks in a bubble of synctest. dial returns the client's side of a connection
// from an address. stop closes the connections, and returns when the server has ended.
func piped(t *testing.T, webhooks *Webhooks) (dial func(address string) *tls.Conn, stop func()) {
	t.Helper()
	connect, _, stop := pipedPort(t, webhooks.port)
	return func(address string) *tls.Conn { return tls.Client(connect(address), insecure) }, stop
}

// pipedPort is piped for any port, and without TLS on the client's side.
func pipedPort(t *testing.T, port Port) (connect func(address string) net.Conn, all *listener, stop func()) {
	t.Helper()
	inner, ended := make(pipes), make(chan error, 1)
	all = &listener{Listener: inner}
	ctx, cancel := context.WithCancel(t.Context())
	go func() { ended <- port.server(all).Start(ctx) }()
	var mu sync.Mutex
	var conns []net.Conn
	connect = func(address string) net.Conn {
		ours, theirs := net.Pipe()
		mu.Lock()
		conns = append(conns, ours)
		mu.Unlock()
		inner <- &addressed{Conn: theirs, address: address}
		return ours
	}
	return connect, all, func() {
		for _, conn := range conns {
			_ = conn.Close()
		}
		close(inner)
		cancel()
		<-ended
		// net/http keeps an answered connection open for half a second.
		time.Sleep(time.Second)
	}
}
