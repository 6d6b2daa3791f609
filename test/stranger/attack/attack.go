// Package attack has attacks on the operator's ports. Each function makes one attempt, and returns
// an error unless it reached the target, so that a test can require a number of attempts.
package attack

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	// timeout bounds a connection, its request, and the answer.
	timeout = 30 * time.Second
	// dripInterval is the time between two bytes of a slow body.
	dripInterval = 100 * time.Millisecond
	// announced is the Content-Length of a slow body.
	announced = 60 << 20
	// maxAnswer bounds the part of an answer that is kept.
	maxAnswer = 1 << 20
)

// Dial opens a TCP connection to an address (host:port).
type Dial func(ctx context.Context, address string) (net.Conn, error)

// From returns a Dial that connects from an IP address of this machine.
func From(ip string) Dial {
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(ip)}, Timeout: timeout}
	return func(ctx context.Context, address string) (net.Conn, error) {
		return dialer.DialContext(ctx, "tcp", address)
	}
}

// Through returns a Dial that connects from the Pod of a relay (test/stranger) with this address.
func Through(relay string) Dial {
	dialer := &net.Dialer{Timeout: timeout}
	return func(ctx context.Context, address string) (net.Conn, error) {
		conn, err := dialer.DialContext(ctx, "tcp", relay)
		if err != nil {
			return nil, fmt.Errorf("failed to reach the relay: %w", err)
		}
		err = conn.SetDeadline(time.Now().Add(timeout))
		if err == nil {
			err = connect(conn, address)
		}
		if err = errors.Join(err, conn.SetDeadline(time.Time{})); err != nil {
			return nil, errors.Join(err, conn.Close())
		}
		return conn, nil
	}
}

// connect requests a connection from the relay. The target sends nothing before the client does, so
// the buffered reader loses no data.
func connect(conn net.Conn, address string) error {
	if _, err := fmt.Fprintf(conn, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", address, address); err != nil {
		return fmt.Errorf("failed to write to the relay: %w", err)
	}
	response, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: http.MethodConnect})
	if err != nil {
		return fmt.Errorf("failed to read from the relay: %w", err)
	}
	if response.StatusCode != http.StatusOK {
		why, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
		return errors.Join(fmt.Errorf("the relay cannot connect to %s: %s: %s", address, response.Status, why), err)
	}
	return nil
}

// secured opens a TLS connection. It verifies no certificate.
func secured(ctx context.Context, dial Dial, address string) (*tls.Conn, error) {
	conn, err := dial(ctx, address)
	if err != nil {
		return nil, err
	}
	client := tls.Client(conn, &tls.Config{InsecureSkipVerify: true}) // #nosec G402 -- a stranger trusts nobody
	if err := errors.Join(conn.SetDeadline(time.Now().Add(timeout)), client.HandshakeContext(ctx)); err != nil {
		return nil, errors.Join(fmt.Errorf("failed to make a handshake: %w", err), conn.Close())
	}
	return client, nil
}

// Idle opens TCP connections to an address and leaves them idle. The caller closes them. The
// operator may reset a connection at once. If more than a tenth of the attempts fail for another
// reason, Idle returns an error.
func Idle(ctx context.Context, dials []Dial, address string, count, atOnce int) (opened []net.Conn, err error) {
	var mu sync.Mutex
	failed := 0
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for i := range count {
		group.Go(func() error {
			conn, err := dials[i%len(dials)](ctx, address)
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				opened = append(opened, conn)
			} else if isReset(err) {
				return nil
			} else if failed++; failed > count/10 {
				return fmt.Errorf("%d of %d connections failed: %w", failed, count, err)
			}
			return nil
		})
	}
	err = group.Wait()
	return opened, err
}

// isReset reports whether the target reset a connection while it was opened, as far as the relay
// reports that.
func isReset(err error) bool {
	return errors.Is(err, syscall.ECONNRESET) || strings.Contains(err.Error(), syscall.ECONNRESET.Error())
}

// Handshake makes a TLS handshake, and resets the connection.
func Handshake(ctx context.Context, dial Dial, address string) error {
	conn, err := secured(ctx, dial, address)
	if err != nil {
		return err
	}
	if tcp, ok := conn.NetConn().(*net.TCPConn); ok {
		err = tcp.SetLinger(0)
	}
	return errors.Join(err, conn.NetConn().Close())
}

// SlowBody announces a large body for the conversion webhook, and sends it byte by byte for some
// time. It returns an error if the server closes the connection before.
func SlowBody(ctx context.Context, dial Dial, address string, hold time.Duration) error {
	conn, err := secured(ctx, dial, address)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	_, err = fmt.Fprintf(conn, "POST /convert HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", announced)
	for end := time.Now().Add(hold); err == nil && time.Now().Before(end); {
		time.Sleep(dripInterval)
		_, err = conn.Write([]byte(" "))
	}
	return err
}

// Send sends a request on a new TLS connection. It returns the status code and the start of the
// answer, which may arrive before the server has read the whole body.
func Send(dial Dial, request *http.Request) (code int, answer []byte, err error) {
	conn, err := secured(request.Context(), dial, request.URL.Host)
	if err != nil {
		return 0, nil, err
	}
	written := make(chan struct{})
	defer func() { <-written }()
	defer func() { _ = conn.Close() }()
	go func() {
		defer close(written)
		_ = request.Write(conn) // an early answer ends it
	}()
	response, err := http.ReadResponse(bufio.NewReader(conn), request)
	if err != nil {
		return 0, nil, fmt.Errorf("failed to read the answer of %s: %w", request.URL, err)
	}
	defer func() { _ = response.Body.Close() }()
	if answer, err = io.ReadAll(io.LimitReader(response.Body, maxAnswer)); err != nil {
		return 0, nil, fmt.Errorf("failed to read the answer of %s: %w", request.URL, err)
	}
	return response.StatusCode, answer, nil
}

// Post is Send for a JSON body.
func Post(ctx context.Context, dial Dial, url string, body io.Reader, size int64) (code int, answer []byte, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, body)
	if err != nil {
		return 0, nil, err
	}
	request.ContentLength = size
	request.Header.Set("Content-Type", "application/json")
	return Send(dial, request)
}

// Review returns the AdmissionReview of the creation of an NginxOperator with a spec (JSON), in the
// name of a user.
func Review(namespace, user, spec string) string {
	return fmt.Sprintf(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"a","operation":"CREATE",`+
		`"namespace":%[1]q,"name":"web","userInfo":{"username":%[2]q,"groups":["system:masters"]},`+
		`"kind":{"group":"operator.example.com","version":"v1alpha2","kind":"NginxOperator"},`+
		`"object":{"apiVersion":"operator.example.com/v1alpha2","kind":"NginxOperator",`+
		`"metadata":{"namespace":%[1]q,"name":"web"},"spec":%[3]s}}}`, namespace, user, spec)
}

// Endless is a reader that repeats one byte without end.
type Endless byte

// Read implements io.Reader.
func (e Endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(e)
	}
	return len(p), nil
}
