package serving

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// maxConnections bounds the connections of a port. maxPerAddress bounds the connections of one
// address. Both include handshakes. A connection costs up to 60 KiB. An API server opens one for
// each concurrent review and retains some.
const maxConnections, maxPerAddress = 512, 192

// listener accepts a bounded number of connections. At a limit, a new connection replaces the
// longest-idle connection of the address with the most idle connections. Clients that open
// connections without using them therefore replace their own, and lock out neither the kubelet nor
// the API server. A busy connection is never replaced.
type listener struct {
	net.Listener

	mu   sync.Mutex
	open map[*connection]struct{}
}

// connection is busy while the operator processes its request. While the request waits for memory or
// for its turn, the connection is idle.
type connection struct {
	net.Conn
	of   *listener
	host string
	busy bool
	// since is the start or the end of the last request.
	since time.Time
	// open ends when the connection is closed or replaced.
	open  context.Context
	leave context.CancelFunc
	// turn ends the turn of a handshake. It is nil if there is none.
	turn atomic.Pointer[func()]
}

func newListener(inner net.Listener) *listener {
	return &listener{Listener: inner, open: map[*connection]struct{}{}}
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	for {
		accepted, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		entered, replaced := l.enter(accepted)
		if replaced != nil {
			replaced.abort()
		}
		if entered != nil {
			return entered, nil
		}
		reset(accepted)
	}
}

// enter adds a connection. At a limit, it returns the connection to replace. If all connections are
// busy, it adds nothing.
func (l *listener) enter(accepted net.Conn) (entered, replaced *connection) {
	entered = &connection{Conn: accepted, of: l, host: hostOf(accepted.RemoteAddr().String()), since: time.Now()}
	entered.open, entered.leave = context.WithCancel(context.Background())
	l.mu.Lock()
	defer l.mu.Unlock()
	open, idle := map[string]int{}, map[string]int{}
	for c := range l.open {
		open[c.host]++
		if !c.busy {
			idle[c.host]++
		}
	}
	own := open[entered.host] >= maxPerAddress
	if own || len(l.open) >= maxConnections {
		for c := range l.open {
			if c.busy || own && c.host != entered.host {
				continue
			}
			if replaced == nil || idle[c.host] > idle[replaced.host] ||
				idle[c.host] == idle[replaced.host] && c.since.Before(replaced.since) {
				replaced = c
			}
		}
		if replaced == nil {
			return nil, nil
		}
		delete(l.open, replaced)
	}
	l.open[entered] = struct{}{}
	return entered, replaced
}

// Close implements net.Conn.
func (c *connection) Close() error {
	c.of.mu.Lock()
	delete(c.of.open, c)
	c.of.mu.Unlock()
	c.leave()
	c.endTurn()
	return c.Conn.Close()
}

// abort resets the connection. The server then closes it.
func (c *connection) abort() {
	c.leave()
	reset(c.Conn)
}

// takeTurn waits for a turn to compute a handshake, unless the connection has one.
func (c *connection) takeTurn(turns *Turns) error {
	if c.turn.Load() != nil {
		return nil
	}
	end, err := turns.take(c.open, c.host)
	if err != nil {
		return err
	}
	c.turn.Store(&end)
	if c.open.Err() != nil {
		c.endTurn()
	}
	return nil
}

func (c *connection) endTurn() {
	if end := c.turn.Swap(nil); end != nil {
		(*end)()
	}
}

// Read implements net.Conn. It ends the turn of a handshake, because the server now waits for the
// client.
func (c *connection) Read(p []byte) (int, error) {
	c.endTurn()
	return c.Conn.Read(p)
}

// note sets whether the connection is busy. The connection can be nil.
func (c *connection) note(busy bool) {
	if c == nil {
		return
	}
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	c.busy, c.since = busy, time.Now()
}

type connectionKey struct{}

// connectionOf returns the connection of a request, or nil in tests that call a handler directly.
func connectionOf(r *http.Request) *connection {
	c, _ := r.Context().Value(connectionKey{}).(*connection)
	return c
}

func withConnection(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, connectionKey{}, unwrap(conn))
}

// noteState restarts the idle time when a request starts and when it ends.
func noteState(conn net.Conn, state http.ConnState) {
	if state == http.StateActive || state == http.StateIdle {
		unwrap(conn).note(false)
	}
}

func unwrap(conn net.Conn) *connection {
	if secured, ok := conn.(*tls.Conn); ok {
		conn = secured.NetConn()
	}
	c, _ := conn.(*connection)
	return c
}

// reset closes a connection immediately. TLS would wait five seconds for a client that does not
// read.
func reset(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.Close()
}

func hostOf(address string) string {
	host, _, _ := net.SplitHostPort(address)
	return host
}
