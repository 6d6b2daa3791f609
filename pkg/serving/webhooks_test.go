package serving

import (
	"cmp"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// serve returns Webhooks with a handler registered at a path, and the HTTP handler of the port.
func serve(t *testing.T, path string, inner http.HandlerFunc) (*Webhooks, http.Handler) {
	t.Helper()
	webhooks := NewWebhooks("127.0.0.1:0", certified(), NewTurns(), "/convert", 0)
	webhooks.Register(path, inner)
	return webhooks, webhooks.port.Handler
}

// post calls a handler like a client at an address, with a body that announces size bytes. If sent
// is not 0, the body ends after sent bytes.
func post(handler http.Handler, path, address string, size, sent int64) *httptest.ResponseRecorder {
	request := httptest.NewRequest(http.MethodPost, path, io.LimitReader(zeros{}, cmp.Or(sent, size)))
	request.ContentLength, request.RemoteAddr = size, address
	recorder := httptest.NewRecorder()
	handler.ServeHTTP(recorder, request)
	return recorder
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

func TestLimits(t *testing.T) {
	read := int64(0)
	inner := func(_ http.ResponseWriter, r *http.Request) {
		read, _ = io.Copy(io.Discard, r.Body)
		if read == 13 {
			panic("thirteen")
		}
	}
	for name, test := range map[string]struct {
		path string
		size int64
		// sent is the length of the body, or 0 if it equals size.
		sent int64
		code int
		read int64
	}{
		"nothing":                   {path: "/convert", code: 200},
		"the largest small one":     {path: "/validate", size: small, code: 200, read: small},
		"a body that ends early":    {path: "/validate", size: small, sent: 1, code: 408},
		"the largest conversion":    {path: "/convert", size: largestConversion, code: 200, read: largestConversion},
		"a larger one":              {path: "/convert", size: largestConversion + 1, code: 413},
		"the largest admission":     {path: "/validate", size: largestAdmission, code: 200, read: largestAdmission},
		"a larger one for that":     {path: "/validate", size: largestAdmission + 1, code: 413},
		"of unknown length":         {path: "/validate", size: -1, code: 411},
		"one that makes it panic":   {path: "/validate", size: 13, code: 500, read: 13},
		"a petabyte that is a word": {path: "/convert", size: 1 << 50, code: 413},
	} {
		t.Run(name, func(t *testing.T) {
			read = 0
			webhooks, handler := serve(t, test.path, inner)
			if got := post(handler, test.path, "192.0.2.1:1", test.size, test.sent).Code; got != test.code || read != test.read {
				t.Errorf("answered %d after %d bytes, want %d after %d", got, read, test.code, test.read)
			}
			released(t, webhooks)
		})
	}
}

// released fails the test if a lane still has memory.
func released(t *testing.T, webhooks *Webhooks) {
	t.Helper()
	for lane, total := range map[*lane]int64{
		webhooks.small: 32 << 20, webhooks.admission: decoded * largestAdmission, webhooks.conversion: 2 * residentConversion,
	} {
		if !lane.memory.TryAcquire(total) {
			t.Error("something is still held after the answer")
		}
		lane.memory.Release(total)
	}
}

// TestClientsDoNotStarveEachOther verifies that clients that post as much as they can block neither
// other clients nor their own small reviews. These wait for the end of one review.
func TestClientsDoNotStarveEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const takes = time.Second
		var posts sync.WaitGroup
		ctx, stop := context.WithCancel(t.Context())
		webhooks, handler := serve(t, "/convert", func(_ http.ResponseWriter, r *http.Request) {
			if strings.HasPrefix(r.RemoteAddr, "192.0.2.1:") && r.ContentLength > small || strings.HasPrefix(r.RemoteAddr, "192.0.2.3:") {
				time.Sleep(takes)
			}
		})
		for range maxPerAddress {
			for address, size := range map[string]int64{"192.0.2.1:1": largestConversion, "192.0.2.3:1": small} {
				posts.Go(func() {
					for ctx.Err() == nil {
						post(handler, "/convert", address, size, 0)
					}
				})
			}
		}
		time.Sleep(takes / 2)
		for name, test := range map[string]struct {
			address string
			size    int64
		}{
			"a small review of another client": {"192.0.2.2:1", small},
			"a large review of another client": {"192.0.2.2:1", largestConversion},
			"a review of the same client":      {"192.0.2.1:3", 1},
		} {
			began := time.Now()
			got := post(handler, "/convert", test.address, test.size, 0).Code
			if got != http.StatusOK || time.Since(began) > takes+longestTurn+longestPause {
				t.Errorf("%s is answered with %d after %s", name, got, time.Since(began))
			}
		}
		stop()
		posts.Wait()
		released(t, webhooks)
	})
}

// TestReviewsWaitForMemory verifies that a review without memory is answered in time, so that its
// client can repeat it.
func TestReviewsWaitForMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		webhooks, handler := serve(t, "/convert", nobody)
		if !webhooks.conversion.memory.TryAcquire(2 * residentConversion) {
			t.Fatal("the memory is in use")
		}
		began := time.Now()
		got := post(handler, "/convert", "192.0.2.1:3", largestConversion, 0)
		if got.Code != http.StatusTooManyRequests || got.Header().Get("Retry-After") == "" || time.Since(began) != waitForMemory {
			t.Errorf("a large review is answered with %d after %s", got.Code, time.Since(began))
		}
	})
}

// TestWebhooksLinger verifies that the server counts as started when it answers. It continues to
// answer after its context has ended, and Start does not wait for that.
func TestWebhooksLinger(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	webhooks := NewWebhooks(listener.Addr().String(), certified(), NewTurns(), "/convert", 200*time.Millisecond)
	webhooks.Register("/validate", http.HandlerFunc(nobody))
	check := func() error { return webhooks.StartedChecker()(httptest.NewRequest(http.MethodGet, "/readyz", nil)) }
	if err := webhooks.Start(t.Context()); err == nil {
		t.Error("no error, though the port is taken")
	}
	_ = listener.Close()
	if err := check(); err == nil {
		t.Error("it counts as started before it is")
	}
	ctx, stop := context.WithCancel(t.Context())
	returned := make(chan error, 1)
	go func() { returned <- webhooks.Start(ctx) }()
	eventually(t, func() bool { return check() == nil })
	client, url := clientAt(t, "127.0.0.1", false), "https://"+webhooks.port.Address+"/validate"
	ask(t, client, url, "{}")

	stop()
	if err := <-returned; err != nil {
		t.Error(err)
	}
	// A client that kept its connection would lose the request that it sends when the server ends.
	response, err := client.Post(url, "application/json", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if response.StatusCode != http.StatusOK || !response.Close {
		t.Errorf("answered %d while it lingers, closes the connection: %t", response.StatusCode, response.Close)
	}
	if err := webhooks.Wait(); err != nil {
		t.Error(err)
	}
	if err := check(); err == nil {
		t.Error("it answers after it has ended")
	}
}
