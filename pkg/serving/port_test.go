package serving

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// serverCertificate is created once, because creating a key takes longer than the rest of the
// tests.
var serverCertificate = func() tls.Certificate {
	server := httptest.NewUnstartedServer(nil)
	server.StartTLS()
	defer server.Close()
	return server.TLS.Certificates[0]
}()

// insecure is the configuration of clients, whose handshakes end with the server's last message.
var insecure = &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12} //nolint:gosec // that of httptest

func certified() *tls.Config {
	return &tls.Config{GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &serverCertificate, nil }}
}

// newWebhooks returns Webhooks with the handler at /validate and at /convert.
func newWebhooks(handler http.HandlerFunc) *Webhooks {
	webhooks := NewWebhooks("127.0.0.1:0", certified(), NewTurns(), "/convert", 0)
	webhooks.Register("/validate", handler)
	webhooks.Register("/convert", handler)
	return webhooks
}

// serveLocally serves a port on this machine until the test ends. It returns the listener and the
// address.
func serveLocally(t *testing.T, port Port) (*listener, string) {
	t.Helper()
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	all, ended := &listener{Listener: inner}, make(chan error, 1)
	ctx, stop := context.WithCancel(t.Context())
	server := port.server(all)
	go func() { ended <- server.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := errors.Join(<-ended, server.Server.Close()); err != nil {
			t.Error(err)
		}
		eventually(t, func() bool { return all.count() == 0 })
	})
	return all, inner.Addr().String()
}

// from returns a dialer that connects from a local address.
func from(address string) *net.Dialer {
	return &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}, Timeout: 5 * time.Second}
}

// clientAt returns a client like the API server's. It uses HTTP/1.1 unless http2 is set.
func clientAt(t testing.TB, address string, http2 bool) *http.Client {
	t.Helper()
	transport := &http.Transport{
		DialContext: from(address).DialContext, ForceAttemptHTTP2: http2,
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // the certificate is that of httptest
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: 10 * time.Second}
}

// ask posts a body and returns the status code of the answer.
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

// silence opens idle connections from some addresses. The operator may reset them.
func silence(t *testing.T, to string, addresses, each int) {
	t.Helper()
	for i := range addresses {
		dialer := from(fmt.Sprintf("127.0.1.%d", i+1))
		for range each {
			conn, err := dialer.Dial("tcp", to)
			if errors.Is(err, syscall.ECONNRESET) {
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = conn.Close() })
		}
	}
}

// nobody is a handler that does nothing.
func nobody(http.ResponseWriter, *http.Request) {}

// TestSilentConnectionsKeepNobodyOut verifies that silent connections, from one address or from
// many, use only the memory that is reserved for them. A client at another address gets an answer
// immediately, and requests in progress continue.
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
			all, address := serveLocally(t, newWebhooks(func(_ http.ResponseWriter, r *http.Request) {
				if r.URL.RawQuery == "hold" {
					close(entered)
					<-hold
				}
			}).port)
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
			// Each connection has one goroutine. The goroutines of closed clients are about to end.
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

// TestWhoMakesRoom verifies that the clients of one address share its connections. Silent
// connections are replaced, starting with the longest-idle one. Busy connections stay.
func TestWhoMakesRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := &listener{}
		must := func(address string) *connection {
			entered, replaced := all.enter(&addressed{nil, address})
			if entered == nil || replaced != nil {
				t.Fatalf("entered %v, replaced %v", entered, replaced)
			}
			return entered
		}
		first, second := must("192.0.2.1:1"), must("192.0.2.1:2")
		first.note(true)
		for range maxPerAddress - 2 {
			time.Sleep(time.Millisecond)
			must("192.0.2.1:3")
		}
		time.Sleep(replaceable)
		if _, replaced := all.enter(&addressed{nil, "192.0.2.1:4"}); replaced != second {
			t.Errorf("%v was replaced by another one of its address", replaced)
		}
		for i := 0; all.count() < maxConnections; i++ {
			must(fmt.Sprintf("192.0.2.%d:1", 2+i%100))
		}
		entered, replaced := all.enter(&addressed{nil, "192.0.3.1:1"})
		if entered == nil || replaced == nil || replaced.from.host != "192.0.2.1" || replaced == first {
			t.Errorf("%v was replaced by one of another address", replaced)
		}
		all.remove(first)
		for _, c := range all.open {
			c.note(true)
		}
		must("192.0.3.2:1").note(true)
		time.Sleep(replaceable)
		if entered, replaced := all.enter(&addressed{nil, "192.0.3.3:1"}); entered != nil || replaced != nil {
			t.Errorf("%v entered and %v was replaced, though all are busy", entered, replaced)
		}
	})
}

// TestNewcomersAreRefused verifies that a client that opens connections all the time, at a limit,
// replaces neither its own new connections nor those of others. Other clients replace its
// connections at once, and it replaces its own ones later.
func TestNewcomersAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := &listener{}
		require := func(host string, wantEntered bool, wantReplaced string) {
			t.Helper()
			entered, replaced := all.enter(&addressed{nil, host + ":1"})
			if replaced == nil {
				replaced = &connection{from: &address{}}
			}
			if (entered != nil) != wantEntered || replaced.from.host != wantReplaced {
				t.Errorf("%s entered: %t, replaced %q", host, entered != nil, replaced.from.host)
			}
		}
		for range maxPerAddress {
			require("a", true, "")
		}
		require("a", false, "")
		for range maxPerAddress - 10 {
			require("b", true, "")
		}
		for all.count() < maxConnections {
			require("c", true, "")
		}
		require("a", false, "")
		require("c", true, "a")
		require("d", true, "a")
		require("a", false, "")
		time.Sleep(replaceable)
		require("a", true, "a")
		all.open = nil

		// Many addresses that share the connections replace none of each other's. One of a tie
		// replaces the longest-idle connection.
		for i := range maxConnections {
			require(fmt.Sprint(i%10), true, "")
			time.Sleep(time.Microsecond)
		}
		for i := range 20 {
			require(fmt.Sprint(i%10), false, "")
		}
		require("e", true, "0")
		require("e", true, "1")
	})
}

// TestRefusedConnectionsAreHeld verifies that a refused connection is closed after a while, and at
// once if too many are held.
func TestRefusedConnectionsAreHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := &listener{}
		refused := func() (heldFor time.Duration) {
			ours, theirs := net.Pipe()
			began := time.Now()
			all.refuse(theirs)
			_, _ = ours.Read(make([]byte, 1)) // until it is closed
			return time.Since(began)
		}
		if heldFor := refused(); heldFor != holdRefused {
			t.Errorf("it is closed after %s", heldFor)
		}
		var clients sync.WaitGroup
		for range maxRefused {
			clients.Go(func() { refused() })
		}
		synctest.Wait()
		if heldFor := refused(); heldFor != 0 {
			t.Errorf("one of too many is closed after %s", heldFor)
		}
		clients.Wait()
		if heldFor := refused(); heldFor != holdRefused {
			t.Errorf("after the others, one is closed after %s", heldFor)
		}
	})
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

// pipes is a listener in memory, for tests with virtual time.
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

// TestSlowClientsAreLeft verifies that an incomplete request ends after a while, and leaves no
// resources.
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
		"sends no body":                    {speak: write(header + "Content-Length: 1\r\n\r\n"), after: readAdmission},
		"is idle": {speak: func(t *testing.T, secured *tls.Conn) {
			write(header+"Content-Length: 0\r\n\r\n")(t, secured)
			response, err := http.ReadResponse(bufio.NewReader(secured), nil)
			if err != nil || response.StatusCode != http.StatusOK {
				t.Errorf("%v, %v", response, err)
			}
		}, after: keptIdle},
		"reads no answer": {
			speak: write(strings.Replace(header, "validate", "large", 1) + "Content-Length: 0\r\n\r\n"), after: answered,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				port, paths := newWebhooks(nobody).port, http.NewServeMux()
				paths.Handle("/validate", port.Handler)
				paths.HandleFunc("/large", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, 8<<20)) })
				port.Handler = paths
				connect, all, stop := pipedPort(t, port)
				ours := connect("192.0.2.1:1")
				switch {
				case test.speak != nil:
					secured := tls.Client(ours, insecure)
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
				// TLS waits five seconds for the client to read the close notification.
				time.Sleep(7 * time.Second)
				synctest.Wait()
				if n := all.count(); n != 0 {
					t.Errorf("%d connections are open six seconds after", n)
				}
				stop()
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

// TestHeadersAreBounded verifies that the server does not read headers and frames that are larger
// than the API server's.
func TestHeadersAreBounded(t *testing.T) {
	_, address := serveLocally(t, newWebhooks(nobody).port)
	for _, http2 := range []bool{false, true} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://"+address+"/validate", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("X-Long", strings.Repeat("a", 2*headerBytes))
		response, err := clientAt(t, "127.0.0.1", http2).Do(request)
		if err != nil {
			continue // HTTP/2 can end the stream instead
		}
		_ = response.Body.Close()
		if response.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
			t.Errorf("answered %s", response.Status)
		}
	}
}

// count returns the number of open connections.
func (l *listener) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.open)
}
