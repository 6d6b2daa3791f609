package operatormanager

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/webhook"
)

// serverCertificate is made once: a key takes longer than all else here.
var serverCertificate = func() tls.Certificate {
	server := httptest.NewUnstartedServer(nil)
	server.StartTLS()
	defer server.Close()
	return server.TLS.Certificates[0]
}()

// newServer returns a server with a handler at /validate and at /convert.
func newServer(handler http.HandlerFunc) *LimitedServer {
	server := NewLimitedServer(webhook.Options{TLSOpts: []func(*tls.Config){
		func(config *tls.Config) { config.Certificates = []tls.Certificate{serverCertificate} },
	}}, "/convert")
	server.Register("/validate", handler)
	server.Register("/convert", handler)
	return server
}

// serveLocally starts a server on a port of this machine.
func serveLocally(t *testing.T, handler http.HandlerFunc) (*connections, string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	all, ended := newConnections(listener), make(chan error, 1)
	ctx, stop := context.WithCancel(t.Context())
	go func() { ended <- newServer(handler).serve(ctx, all) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if all.open != 0 || len(all.byAddress) != 0 {
			t.Errorf("%d connections of %d addresses are left", all.open, len(all.byAddress))
		}
	})
	return all, listener.Addr().String()
}

// from returns what dials from an address.
func from(address string) *net.Dialer {
	return &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}, Timeout: 5 * time.Second}
}

// clientAt is a client as the API server is one: it uses HTTP/1.1 unless it is asked for HTTP/2.
func clientAt(t *testing.T, address string, http2 bool) *http.Client {
	t.Helper()
	transport := &http.Transport{
		DialContext: from(address).DialContext, ForceAttemptHTTP2: http2,
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // the certificate is that of httptest
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: 10 * time.Second}
}

// ask posts a body and returns the code of the answer.
func ask(t *testing.T, client *http.Client, url, body string) int {
	t.Helper()
	response, err := client.Post(url, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		t.Fatal(err)
	}
	return response.StatusCode
}

func silence(t *testing.T, to string, addresses, each int) {
	t.Helper()
	for i := range addresses {
		dialer := from(fmt.Sprintf("127.0.1.%d", i+1))
		for range each {
			conn, err := dialer.Dial("tcp", to)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = conn.Close() })
		}
	}
}

// Connections that never speak, from one address or from many, cost what was set aside for them; somebody at another address is
// answered at once, and what was being answered goes on.
func TestSilentConnectionsKeepNobodyOut(t *testing.T) {
	for name, test := range map[string]struct{ addresses, each, most int }{
		"of one address":     {1, 2000, 200},
		"of many addresses":  {100, 20, 512},
		"of a few addresses": {4, 500, 512},
	} {
		t.Run(name, func(t *testing.T) {
			hold, entered := make(chan struct{}), make(chan struct{})
			release := sync.OnceFunc(func() { close(hold) })
			defer release()
			all, address := serveLocally(t, func(_ http.ResponseWriter, r *http.Request) {
				if r.URL.RawQuery == "hold" {
					close(entered)
					<-hold
				}
			})
			answered := make(chan int, 1)
			go func() {
				defer close(answered)
				answered <- ask(t, clientAt(t, "127.0.0.3", false), "https://"+address+"/validate?hold", "{}")
			}()
			<-entered
			goroutines, memory := runtime.NumGoroutine(), heapNow()
			silence(t, address, test.addresses, test.each)
			for _, http2 := range []bool{false, true} {
				began := time.Now()
				if code := ask(t, clientAt(t, "127.0.0.2", http2), "https://"+address+"/validate", "{}"); code != http.StatusOK {
					t.Errorf("answered %d", code)
				}
				if took := time.Since(began); took > 5*time.Second {
					t.Errorf("answered after %s", took)
				}
			}
			open := all.count()
			// One goroutine for each connection; those of clients that were closed are about to end.
			eventually(t, func() bool { return runtime.NumGoroutine()-goroutines <= test.most+20 })
			grown := heapNow() - memory
			t.Logf("%d connections are open, %d goroutines more, %d KiB more", open, runtime.NumGoroutine()-goroutines, grown>>10)
			if open > test.most || grown > 64<<20 {
				t.Errorf("%d connections, %d MiB", open, grown>>20)
			}
			release()
			if code := <-answered; code != http.StatusOK {
				t.Errorf("what was being answered ended with %d", code)
			}
		})
	}
}

func heapNow() int64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc + stats.StackInuse) //nolint:gosec // it is far from the largest
}

func eventually(t *testing.T, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !holds(); runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatal("it does not hold within ten seconds")
		}
	}
}

// Clients of one address share what it may have: the silent ones go, the longest silent first, and those that are answered stay.
func TestWhoMakesRoom(t *testing.T) {
	all := newConnections(nil)
	enter := func(address string) (entered, left *connection) {
		ours, theirs := net.Pipe()
		t.Cleanup(func() { _, _ = ours.Close(), theirs.Close() })
		return all.enter(&addressed{ours, address})
	}
	must := func(address string) *connection {
		entered, left := enter(address)
		if entered == nil || left != nil {
			t.Fatalf("entered %v, left %v", entered, left)
		}
		return entered
	}
	first, second := must("192.0.2.1:1"), must("192.0.2.1:2")
	done := first.answer()
	for range maxConnectionsPerClient - 2 {
		must("192.0.2.1:3")
	}
	if _, left := enter("192.0.2.1:4"); left != second {
		t.Errorf("%v left for another one of its address", left)
	}
	for i := 0; all.open < maxConnections; i++ {
		must(fmt.Sprintf("192.0.2.%d:1", 2+i%100))
	}
	if entered, left := enter("192.0.3.1:1"); entered == nil || left == nil || left.address != "192.0.2.1" || left == first {
		t.Errorf("%v left for one of another address", left)
	}
	done()
	if err := first.Close(); err != nil || all.open != maxConnections-1 {
		t.Errorf("%d are open, %v", all.open, err)
	}
	_ = first.Close()
	if all.open != maxConnections-1 {
		t.Errorf("%d are open after it was closed twice", all.open)
	}
	for _, of := range all.byAddress {
		for c := range of {
			c.answer()
		}
	}
	must("192.0.3.2:1").answer()
	if entered, left := enter("192.0.3.3:1"); entered != nil || left != nil {
		t.Errorf("there is room for %v, and %v left, though all are being answered", entered, left)
	}
}

// addressed is a connection from an address.
type addressed struct {
	net.Conn
	address string
}

func (a *addressed) RemoteAddr() net.Addr { return addr(a.address) }

type addr string

func (addr) Network() string  { return "tcp" }
func (a addr) String() string { return string(a) }

// pipes is a listener in memory, so that time can be made to pass.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	conn, open := <-p
	if !open {
		return nil, net.ErrClosed
	}
	return conn, nil
}
func (p pipes) Close() error   { return nil }
func (p pipes) Addr() net.Addr { return addr("pipe") }

// Whatever a client leaves half done ends after a while, and nothing of it is left.
func TestSlowClientsAreLeft(t *testing.T) {
	const header = "POST /validate HTTP/1.1\r\nHost: a\r\n"
	for name, test := range map[string]struct {
		speak func(t *testing.T, secured *tls.Conn)
		plain string
		after time.Duration
	}{
		"says nothing":                     {after: firstBytes},
		"begins a handshake":               {plain: "\x16\x03\x01\x02\x00\x01", after: firstBytes},
		"says nothing after the handshake": {speak: func(*testing.T, *tls.Conn) {}, after: firstBytes},
		"ends no header":                   {speak: write(header), after: firstBytes},
		"sends no body":                    {speak: write(header + "Content-Length: 1\r\n\r\n"), after: readBody},
		"is idle": {speak: func(t *testing.T, secured *tls.Conn) {
			write(header+"Content-Length: 0\r\n\r\n")(t, secured)
			response, err := http.ReadResponse(bufio.NewReader(secured), nil)
			if err != nil || response.StatusCode != http.StatusOK {
				t.Errorf("%v, %v", response, err)
			}
		}, after: keptIdle},
		"reads no answer": {
			speak: write(strings.Replace(header, "validate", "validate?large", 1) + "Content-Length: 0\r\n\r\n"), after: answered,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := newServer(func(w http.ResponseWriter, r *http.Request) {
					if r.URL.RawQuery == "large" {
						_, _ = w.Write(make([]byte, 8<<20))
					}
				})
				listener, ended := make(pipes), make(chan error, 1)
				all := newConnections(listener)
				ctx, stop := context.WithCancel(t.Context())
				go func() { ended <- server.serve(ctx, all) }()
				ours, theirs := net.Pipe()
				listener <- theirs
				switch {
				case test.speak != nil:
					secured := tls.Client(ours, &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12}) //nolint:gosec // as above
					if err := secured.Handshake(); err != nil {
						t.Fatal(err)
					}
					test.speak(t, secured)
				case test.plain != "":
					_, _ = ours.Write([]byte(test.plain))
				}
				time.Sleep(test.after - time.Second)
				synctest.Wait()
				if n := all.count(); n != 1 {
					t.Errorf("%d connections are open a second before the time is over", n)
				}
				if name == "sends no body" {
					go func() { _, _ = io.Copy(io.Discard, ours) }()
				}
				// TLS waits five seconds for somebody to read that it ends.
				time.Sleep(7 * time.Second)
				synctest.Wait()
				if n := all.count(); n != 0 {
					t.Errorf("%d connections are open six seconds after", n)
				}
				_ = ours.Close()
				close(listener)
				stop()
				<-ended
			})
		})
	}
}

func write(text string) func(*testing.T, *tls.Conn) {
	return func(t *testing.T, secured *tls.Conn) {
		if _, err := io.WriteString(secured, text); err != nil {
			t.Error(err)
		}
	}
}

// Neither headers nor frames are read that are larger than the API server has any.
func TestHeadersAreBounded(t *testing.T) {
	_, address := serveLocally(t, func(http.ResponseWriter, *http.Request) {})
	for _, http2 := range []bool{false, true} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://"+address+"/validate", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("X-Long", strings.Repeat("a", 2*headerBytes))
		response, err := clientAt(t, "127.0.0.1", http2).Do(request)
		if err != nil {
			continue // HTTP/2 may end the stream
		}
		_ = response.Body.Close()
		if response.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
			t.Errorf("answered %s", response.Status)
		}
	}
}

// The server is started when it answers, and ends when its context does.
func TestServerStarts(t *testing.T) {
	server := newServer(func(http.ResponseWriter, *http.Request) {})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server.options.Host, server.options.Port = "127.0.0.1", listener.Addr().(*net.TCPAddr).Port
	check := func() error { return server.StartedChecker()(httptest.NewRequest(http.MethodGet, "/readyz", nil)) }
	if err := check(); err == nil {
		t.Error("it counts as started before it is")
	}
	if err := server.Start(t.Context()); err == nil {
		t.Error("no error, though the port is taken")
	}
	_ = listener.Close()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- server.Start(ctx) }()
	eventually(t, func() bool { return check() == nil })
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// count returns how many connections are open.
func (l *connections) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.open
}
