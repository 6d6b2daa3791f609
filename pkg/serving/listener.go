package serving

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"slices"
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
	open []*connection
	// refused is the number of refused connections that are held.
	refused atomic.Int64
}

type address struct {
	host string
	idle int
}

// connection is busy during its request, unless that waits for memory or its turn.
type connection struct {
	net.Conn
	of   *listener
	from *address
	busy bool
	// since is the start or the end of the last request.
	since time.Time
	// context ends when the connection is closed or replaced, by leave.
	context context.Context
	leave   context.CancelFunc
	// turn ends the turn of a handshake. It is nil if the connection has no turn.
	turn atomic.Pointer[func()]
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
	from, own := &address{host: hostOf(accepted.RemoteAddr().String())}, 0
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.open {
		if c.from.host == from.host {
			from, own = c.from, own+1
		}
	}

	if own >= maxPerAddress || len(l.open) >= maxConnections {
		replaced = l.replacedBy(from, own >= maxPerAddress)
		if replaced == nil {
			return nil, nil
		}
		l.remove(replaced)
	}

	entered = &connection{Conn: accepted, of: l, from: from, since: time.Now()}
	entered.context, entered.leave = context.WithCancel(context.Background())
	l.open = append(l.open, entered)
	return entered, replaced
}

// replacedBy returns the connection that a new one from an address replaces, or nil: the
// longest-idle one of the address with the most idle connections, or of its own. The caller holds
// the lock. A client can cause calls at any rate, so it counts without a map.
func (l *listener) replacedBy(from *address, ownOnly bool) (longest *connection) {
	for _, c := range l.open {
		c.from.idle = 0
	}

	for _, c := range l.open {
		if !c.busy {
			c.from.idle++
		}
	}

	for _, c := range l.open {
		if c.busy || ownOnly && c.from != from {
			continue
		}
		if longest == nil || c.from.idle > longest.from.idle ||
			c.from.idle == longest.from.idle && c.since.Before(longest.since) {
			longest = c
		}
	}

	if longest == nil || time.Since(longest.since) >= replaceable {
		return longest
	}

	// An address replaces a newer connection only if it still has fewer idle ones afterwards.
	// Otherwise, two addresses could replace each other's all the time.
	if longest.from != from && (from.idle == 0 || from.idle+1 < longest.from.idle) {
		return longest
	}
	return nil
}

// remove removes a connection, unless it is removed already. The caller holds the lock.
func (l *listener) remove(removed *connection) {
	l.open = slices.DeleteFunc(l.open, func(c *connection) bool { return c == removed })
}

// Close implements net.Conn.
func (c *connection) Close() error {
	c.of.mu.Lock()
	c.of.remove(c)
	c.of.mu.Unlock()
	c.leave()
	c.endTurn()
	return c.Conn.Close()
}

func (c *connection) abort() {
	c.leave()
	reset(c.Conn)
}

// takeTurn waits for a turn to compute a handshake, unless the connection has one.
func (c *connection) takeTurn(turns *Turns) error {
	if c.turn.Load() != nil {
		return nil
	}

	end, err := turns.take(c.context, c.from.host)
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
		return c.from.host
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
