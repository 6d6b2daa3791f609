package main

import (
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
)

// TestRelay checks that a request through the relay reaches the target over a connection of the
// relay.
func TestRelay(t *testing.T) {
	target := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.Header().Set("From", r.RemoteAddr) }))
	defer target.Close()
	proxy := httptest.NewServer(newRelay())
	defer proxy.Close()
	through, err := url.Parse(proxy.URL)
	if err != nil {
		t.Fatal(err)
	}
	client := target.Client()
	client.Transport.(*http.Transport).Proxy = http.ProxyURL(through)
	response, err := client.Get(target.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	if host, _, err := net.SplitHostPort(response.Header.Get("From")); err != nil || host != "127.0.0.1" {
		t.Errorf("the target saw a connection from %q, %v", host, err)
	}
}

// TestRelayAnswers checks that the relay reports a target that refuses connections, and that its
// probe needs no target.
func TestRelayAnswers(t *testing.T) {
	proxy := httptest.NewServer(newRelay())
	defer proxy.Close()
	for _, test := range []struct {
		method, host string
		want         int
	}{
		{http.MethodConnect, closedAddress(t), http.StatusBadGateway},
		{http.MethodGet, "", http.StatusNoContent},
	} {
		request, err := http.NewRequest(test.method, proxy.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Host = test.host
		response, err := proxy.Client().Do(request)
		if err != nil {
			t.Fatal(err)
		}
		if _ = response.Body.Close(); response.StatusCode != test.want {
			t.Errorf("%s of %q was answered %s", test.method, test.host, response.Status)
		}
	}
}
