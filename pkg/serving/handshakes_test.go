package serving

import (
	"context"
	"crypto"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/example/nginx-operator/pkg/certificates"
)

// watchedKey is a private key that calls a function before each signature.
type watchedKey struct {
	crypto.Signer
	before func()
}

func (k watchedKey) Sign(random io.Reader, digest []byte, options crypto.SignerOpts) ([]byte, error) {
	k.before()
	return k.Signer.Sign(random, digest, options)
}

// TestHandshakesTakeTurns verifies that the operator signs in a turn, with each kind of key and
// version of TLS, and also if it has requested a second hello. The turn ends before the client's
// answer.
func TestHandshakesTakeTurns(t *testing.T) {
	for name, certificate := range map[string]tls.Certificate{"RSA": serverCertificate, "P-256": *ownCertificate(t)} {
		for version, client := range map[string]*tls.Config{
			"TLS 1.2":             {MaxVersion: tls.VersionTLS12},
			"TLS 1.3":             {MinVersion: tls.VersionTLS13, CurvePreferences: []tls.CurveID{tls.CurveP256}},
			"with a second hello": {MinVersion: tls.VersionTLS13, CurvePreferences: []tls.CurveID{tls.X25519, tls.CurveP384}},
		} {
			t.Run(name+"/"+version, func(t *testing.T) {
				turns, signed := NewTurns(), atomic.Int64{}
				watched := certificate
				watched.PrivateKey = watchedKey{certificate.PrivateKey.(crypto.Signer), func() {
					signed.Add(1)
					if !turns.isTaken() {
						t.Error("the operator signs without a turn")
					}
				}}
				_, address := serveLocally(t, Port{Name: "metrics", Turns: turns, Handler: http.NotFoundHandler(), TLS: &tls.Config{
					GetCertificate:   func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &watched, nil },
					CurvePreferences: []tls.CurveID{tls.CurveP256, tls.CurveP384},
				}})
				config := client.Clone()
				config.InsecureSkipVerify = true
				conn, err := tls.DialWithDialer(from("127.0.0.1"), "tcp", address, config)
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				eventually(t, func() bool { return !turns.isTaken() })
				if n := signed.Load(); n != 1 {
					t.Errorf("it signed %d times", n)
				}
			})
		}
	}
}

func ownCertificate(t *testing.T) *tls.Certificate {
	t.Helper()
	data, err := certificates.New([]string{"localhost"}, certificates.Lifetime)
	if err != nil {
		t.Fatal(err)
	}
	own, err := certificates.Load(data)
	if err != nil {
		t.Fatal(err)
	}
	return own
}

func (t *Turns) isTaken() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.taken
}

// mute drops what its client writes after the hello.
type mute struct {
	net.Conn
	writes atomic.Int64
}

func (m *mute) Write(p []byte) (int, error) {
	if m.writes.Add(1) > 1 {
		return len(p), nil
	}
	return m.Conn.Write(p)
}

// TestIncompleteHandshakesHaveNoTurn verifies that as many clients as an address may have, except
// for one, delay no request if they send the start of a hello or end no handshake.
func TestIncompleteHandshakesHaveNoTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		webhooks := newWebhooks(nobody)
		turns := webhooks.port.Turns
		connect, _, stop := pipedPort(t, webhooks.port)
		for i := range maxPerAddress - 1 {
			conn := connect("192.0.2.1:1")
			if i%2 == 0 {
				_, _ = conn.Write([]byte("\x16\x03\x01\x02\x00\x01"))
				continue
			}
			go func() { _ = tls.Client(&mute{Conn: conn}, insecure).Handshake() }()
		}
		synctest.Wait()
		if turns.taken {
			t.Error("an incomplete handshake has a turn")
		}
		began := time.Now()
		secured := tls.Client(connect("192.0.2.1:2"), insecure)
		write("POST /validate HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n")(t, secured)
		if _, err := secured.Read(make([]byte, 1)); err != nil || time.Since(began) > 0 {
			t.Errorf("a request is answered after %s: %v", time.Since(began), err)
		}
		stop()
	})
}

// TestClosedConnectionsLeaveTheirTurns verifies that a handshake that waits for its turn ends if
// its connection is replaced or closed.
func TestClosedConnectionsLeaveTheirTurns(t *testing.T) {
	for name, end := range map[string]func(*connection){
		"replaced": (*connection).abort,
		"closed":   func(c *connection) { _ = c.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				webhooks := newWebhooks(nil)
				turns := webhooks.port.Turns
				connect, all, stop := pipedPort(t, webhooks.port)
				turns.taken = true // a turn without end
				failed := make(chan error, 1)
				go func() { failed <- tls.Client(connect("192.0.2.1:1"), insecure).Handshake() }()
				synctest.Wait()
				if len(turns.waiting) != 1 || all.count() != 1 {
					t.Fatalf("%d clients wait on %d connections", len(turns.waiting), all.count())
				}
				all.mu.Lock()
				open := slices.Clone(all.open)
				all.mu.Unlock()
				for _, c := range open {
					end(c)
				}
				if err := <-failed; err == nil {
					t.Error("the handshake succeeded")
				}
				synctest.Wait()
				if len(turns.waiting) > 0 || all.count() > 0 {
					t.Errorf("%d clients wait on %d connections", len(turns.waiting), all.count())
				}
				turns.taken = false
				stop()
			})
		})
	}
}

// TestManyHandshakesAtOnce verifies that all connections that an API server can have to a port make
// their handshakes at the same time, next to an address that makes handshakes without end. Only the
// handshakes advance the time.
func TestManyHandshakesAtOnce(t *testing.T) {
	const takes = 2 * time.Millisecond // an RSA signature on a slow processor
	own := ownCertificate(t)
	synctest.Test(t, func(t *testing.T) {
		turns := NewTurns()
		connect, _, stop := pipedPort(t, Port{Name: "metrics", Turns: turns, Handler: http.NotFoundHandler(), TLS: &tls.Config{
			GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
				time.Sleep(takes)
				return own, nil
			},
		}})
		client := func(address string) *tls.Conn { return tls.Client(connect(address), insecure) }
		ctx, end := context.WithCancel(t.Context())
		var attackers, others sync.WaitGroup
		for range maxPerAddress {
			attackers.Go(func() {
				for ctx.Err() == nil {
					conn := client("192.0.2.1:1")
					_ = conn.Handshake()
					_ = conn.NetConn().Close()
				}
			})
		}
		time.Sleep(2 * unpaced)
		turns.mu.Lock()
		used := turns.usage(time.Now())
		turns.mu.Unlock()
		if used <= unpaced {
			t.Error("the attack uses too little time to delay others")
		}
		began := time.Now()
		for range maxPerAddress {
			others.Go(func() {
				if err := client("192.0.2.2:1").Handshake(); err != nil {
					t.Error(err)
				}
			})
		}
		others.Wait()
		if took := time.Since(began); took > 2*maxPerAddress*(takes+longestPause)+longestTurn {
			t.Errorf("they took %s", took)
		}
		end()
		attackers.Wait()
		stop()
	})
}
