package main

import (
	"context"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/example/nginx-operator/test/stranger/attack"
)

// attacks has every attack. Its argument is the address of the operator.
var attacks = map[string]func(context.Context, attack.Dial, string) error{
	"idle connections": func(ctx context.Context, dial attack.Dial, address string) error {
		conns, err := attack.Idle(ctx, []attack.Dial{dial, dial}, address, 5, 2)
		for _, conn := range conns {
			err = errors.Join(err, conn.Close())
		}
		return err
	},
	"handshake": attack.Handshake,
	"hello":     attack.Hello,
	"requests": func(ctx context.Context, dial attack.Dial, address string) error {
		return attack.Requests(ctx, dial, http.MethodGet, "https", address, "/metrics")
	},
	"requests without a length": func(ctx context.Context, dial attack.Dial, address string) error {
		return attack.Requests(ctx, dial, http.MethodPost, "https", address, "/convert")
	},
	"slow body": func(ctx context.Context, dial attack.Dial, address string) error {
		return attack.SlowBody(ctx, dial, address, 300*time.Millisecond)
	},
	"review": func(ctx context.Context, dial attack.Dial, address string) error {
		body := attack.Review("a", "b", "{}")
		code, answer, err := attack.Post(ctx, dial, "https://"+address+"/convert", strings.NewReader(body), int64(len(body)))
		if err == nil && (code != http.StatusTeapot || string(answer) != "short and stout") {
			err = errors.New("another answer")
		}
		return err
	},
	"endless review": func(ctx context.Context, dial attack.Dial, address string) error {
		_, _, err := attack.Post(ctx, dial, "https://"+address+"/convert", attack.Endless('a'), -1)
		return err
	},
}

// TestAttacksNeedATarget verifies that no attack counts as made if the relay or the operator cannot
// be reached, or if the operator does not answer.
func TestAttacksNeedATarget(t *testing.T) {
	start := func(start func(http.Handler) *httptest.Server, handler http.Handler) string {
		server := start(handler)
		t.Cleanup(server.Close)
		return server.Listener.Addr().String()
	}
	relay := attack.Through(start(httptest.NewServer, newRelay()))
	target := start(httptest.NewTLSServer, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength >= 0 {
			_, _ = io.Copy(io.Discard, r.Body)
		}
		w.WriteHeader(http.StatusTeapot)
		_, _ = io.WriteString(w, "short and stout")
	}))
	aborts := start(httptest.NewTLSServer, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	notRelay, closed := start(httptest.NewServer, http.NotFoundHandler()), closedAddress(t)
	for name, test := range map[string]struct {
		dial    attack.Dial
		address string
		// reached are the attacks that reach the target.
		reached []string
	}{
		"through a relay":   {relay, target, slices.Collect(maps.Keys(attacks))},
		"from an address":   {attack.From("127.0.2.1"), target, slices.Collect(maps.Keys(attacks))},
		"no relay":          {attack.Through(closed), target, nil},
		"no CONNECT":        {attack.Through(notRelay), target, nil},
		"no operator":       {relay, closed, nil},
		"no operator here":  {attack.From("127.0.2.1"), closed, nil},
		"no TLS":            {relay, notRelay, []string{"idle connections", "hello"}},
		"no answer":         {relay, aborts, []string{"idle connections", "handshake", "hello"}},
		"not their address": {attack.From("192.0.2.1"), target, nil},
	} {
		for kind, attempt := range attacks {
			t.Run(name+"/"+kind, func(t *testing.T) {
				if err := attempt(t.Context(), test.dial, test.address); (err == nil) != slices.Contains(test.reached, kind) {
					t.Errorf("the attack returned %v", err)
				}
			})
		}
	}
}

// closedAddress returns an address that refuses connections.
func closedAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	return listener.Addr().String()
}
