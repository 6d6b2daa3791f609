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
	"time"
)

// reads is the number of requests that Requests makes on a connection.
const reads = 20

// Hello sends the first message of a TLS handshake, and resets the connection without reading the
// answer.
func Hello(ctx context.Context, dial Dial, address string) error {
	conn, err := dial(ctx, address)
	if err != nil {
		return err
	}
	sent := &firstMessage{Conn: conn}
	_ = tls.Client(sent, &tls.Config{InsecureSkipVerify: true}).HandshakeContext(ctx) // #nosec G402 -- a stranger trusts nobody
	if tcp, ok := conn.(*net.TCPConn); ok {
		err = tcp.SetLinger(0)
	}
	if sent.err == nil && sent.written == 0 {
		sent.err = errors.New("no hello was sent")
	}
	return errors.Join(sent.err, err, conn.Close())
}

// firstMessage is a connection that fails after the client's first message.
type firstMessage struct {
	net.Conn
	written int
	err     error
}

func (f *firstMessage) Write(p []byte) (int, error) {
	n, err := f.Conn.Write(p)
	f.written += n
	f.err = err
	return n, err
}

func (*firstMessage) Read([]byte) (int, error) { return 0, io.EOF }

// Requests repeats a request without a body on one connection, like a client that the operator
// refuses. Without TLS, the address is that of the probes.
func Requests(ctx context.Context, dial Dial, method, scheme, address, path string) error {
	var conn net.Conn
	var err error
	if scheme == "https" {
		conn, err = secured(ctx, dial, address)
	} else {
		conn, err = dial(ctx, address)
	}
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(time.Now().Add(timeout)); err != nil {
		return err
	}
	answers := bufio.NewReader(conn)
	for range reads {
		header := ""
		if method == http.MethodPost {
			header = "Transfer-Encoding: chunked\r\n"
		}
		if _, err := fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: a\r\n%s\r\n", method, path, header); err != nil {
			return fmt.Errorf("failed to send a request: %w", err)
		}
		if method == http.MethodPost {
			if _, err := io.WriteString(conn, "0\r\n\r\n"); err != nil {
				return fmt.Errorf("failed to send a body: %w", err)
			}
		}
		response, err := http.ReadResponse(answers, nil)
		if err != nil {
			return fmt.Errorf("failed to read an answer of %s: %w", address, err)
		}
		if _, err := io.Copy(io.Discard, response.Body); err != nil {
			return fmt.Errorf("failed to read an answer of %s: %w", address, err)
		}
		if response.Close {
			return nil
		}
	}
	return nil
}
