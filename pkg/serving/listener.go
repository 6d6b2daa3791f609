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

const (
	// maxConnections bounds the connections of a port, and maxPerAddress those of one address. Both
	// include handshakes. A connection costs up to 60 KiB.
	maxConnections, maxPerAddress = 512, 192
	// replaceable is the time after which a connection can be replaced by another one of its
	// address, or of one that has about as many. Before it, a refusal costs less than a handshake.
	replaceable = time.Second
	// holdRefused is the time for which a refused connection is neither read nor closed, so that
	// its client does not open the next one. maxRefused bounds these connections, of 4 KiB each.
	holdRefused, maxRefused = time.Second, 2048
)

// listener accepts a bounded number of connections. At a limit, a new connection replaces the
// longest-idle connection of the address with the most idle connections, and never a busy one.
// Clients that open connections without using them therefore replace their own.
type listener struct {
	net.Listener

	mu   sync.Mutex
	open map[*connection]struct{}
	// refused is the number of refused connections that are held.
	refused atomic.Int64
}

// connection is busy while the operator processes its request. While the request waits for memory
// or for its turn, the connection is idle.
type connection struct {
	net.Conn
	of   *listener
	host string
	busy bool
	// since is the start or the end of the last request.
	since time.Time
	// context ends when the connection is closed or replaced, by leave.
	context context.Context
	leave   context.CancelFunc
	// turn ends the turn of a handshake. It is nil if the connection has no turn.
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
		l.refuse(accepted)
	}
}

// refuse resets a connection after holdRefused, or at once if maxRefused are held.
func (l *listener) refuse(accepted net.Conn) {
	if l.refused.Add(1) > maxRefused {
		l.refused.Add(-1)
		reset(accepted)
		return
	}
	if tcp, ok := accepted.(*net.TCPConn); ok {
		_ = tcp.SetReadBuffer(0) // the least that the kernel has
	}
	time.AfterFunc(holdRefused, func() {
		reset(accepted)
		l.refused.Add(-1)
	})
}

// enter adds a connection. At a limit, it returns the one to replace, or nil twice if there is none.
func (l *listener) enter(accepted net.Conn) (entered, replaced *connection) {
	host, own := hostOf(accepted.RemoteAddr().String()), 0
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.open {
		if c.host == host {
			own++
		}
	}

	if own >= maxPerAddress || len(l.open) >= maxConnections {
		replaced = l.replacedBy(host, own >= maxPerAddress)
		if replaced == nil {
			return nil, nil
		}
		delete(l.open, replaced)
	}

	entered = &connection{Conn: accepted, of: l, host: host, since: time.Now()}
	entered.context, entered.leave = context.WithCancel(context.Background())
	l.open[entered] = struct{}{}
	return entered, replaced
}

// replacedBy returns the connection that a new one from a host replaces, or nil: the longest-idle
// one of the host with the most idle connections, or of its own host. The caller holds the lock.
func (l *listener) replacedBy(host string, ownOnly bool) (longest *connection) {
	idle := map[string]int{}
	for c := range l.open {
		if !c.busy {
			idle[c.host]++
		}
	}

	most := 0
	for c := range l.open {
		if c.busy || ownOnly && c.host != host {
			continue
		}
		if n := idle[c.host]; n > most || n == most && c.since.Before(longest.since) {
			longest, most = c, n
		}
	}
	if longest == nil || time.Since(longest.since) >= replaceable {
		return longest
	}

	// A host replaces a newer connection only if it still has fewer idle ones afterwards.
	// Otherwise, two hosts could replace each other's all the time.
	if longest.host != host && (idle[host] == 0 || idle[host]+1 < most) {
		return longest
	}
	return nil
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
	end, err := turns.take(c.context, c.host)
	if err != nil {
		return err
	}
	c.turn.Store(&end)
	if c.context.Err() != nil {
		c.endTurn()
	}
	return nil
}

func (c *connection) endTurn() {
	if end := c.turn.Swap(nil); end != nil {
		(*end)()
	}
}

// Read implements net.Conn. It ends the turn of a handshake, which now waits for the client.
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
func connectionOf(ctx context.Context) *connection {
	c, _ := ctx.Value(connectionKey{}).(*connection)
	return c
}

func withConnection(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, connectionKey{}, unwrap(conn))
}

// AddressOf returns the IP address of the client of a request, or "" in tests without a connection.
func AddressOf(ctx context.Context) string {
	if c := connectionOf(ctx); c != nil {
		return c.host
	}
	return ""
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

// reset closes a connection immediately. TLS would wait five seconds for the client.
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
