package operatormanager

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/webhook"
)

// serve returns the handler that a limited server makes of one that is registered at a path.
func serve(t *testing.T, path string, inner http.HandlerFunc) (*LimitedServer, http.Handler) {
	t.Helper()
	mux := http.NewServeMux()
	server := NewLimitedServer(webhook.Options{WebhookMux: mux}, "/convert")
	server.Register(path, inner)
	return server, mux
}

// post asks a handler as a client of an address would, with a body of so many bytes.
func post(handler http.Handler, path, address string, size int64) *httptest.ResponseRecorder {
	request := httptest.NewRequest(http.MethodPost, path, io.LimitReader(zeros{}, size))
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
		code int
		read int64
	}{
		"nothing":                   {path: "/convert", code: 200},
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
			server, handler := serve(t, test.path, inner)
			if got := post(handler, test.path, "192.0.2.1:1", test.size).Code; got != test.code || read != test.read {
				t.Errorf("answered %d after %d bytes, want %d after %d", got, read, test.code, test.read)
			}
			if len(server.requests.clients) > 0 || !server.requests.all.TryAcquire(bytesInFlight) {
				t.Error("something is still held after the answer")
			}
		})
	}
}

// A client that posts all it can keeps no other one from being answered.
func TestClientsDoNotStarveEachOther(t *testing.T) {
	var entered, ended sync.WaitGroup
	hold := make(chan struct{})
	_, handler := serve(t, "/convert", func(_ http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.RemoteAddr, "192.0.2.1:") {
			return
		}
		entered.Done()
		<-hold
	})
	entered.Add(1)
	ended.Go(func() { post(handler, "/convert", "192.0.2.1:1", largestConversion) })
	entered.Wait()
	entered.Add(requestsPerClient - 1)
	for range requestsPerClient - 1 {
		ended.Go(func() { post(handler, "/convert", "192.0.2.1:2", 1<<10) })
	}
	entered.Wait()
	if got := post(handler, "/convert", "192.0.2.1:3", 1); got.Code != http.StatusTooManyRequests || got.Header().Get("Retry-After") == "" {
		t.Errorf("one request more than a client may have is answered with %d", got.Code)
	}
	if got := post(handler, "/convert", "192.0.2.2:1", largestConversion).Code; got != http.StatusOK {
		t.Errorf("another client is answered with %d", got)
	}
	close(hold)
	ended.Wait()
	entered.Add(1)
	if got := post(handler, "/convert", "192.0.2.1:4", largestConversion).Code; got != http.StatusOK {
		t.Errorf("afterwards the client is answered with %d", got)
	}
}
