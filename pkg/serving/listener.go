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

// replaceable is the time after which a connection can be replaced by another one of its address,
// or of an address that has about as many. A client that opens connections all the time is refused
// instead, which costs less than a connection that is replaced during its handshake.
const replaceable = time.Second

// holdRefused is the time for which a refused connection is neither read nor closed, so that its
// client cannot open the next one at once: otherwise the operator would mostly refuse connections.
// maxRefused bounds these connections of a port. One costs about 4 KiB. Envoy's filter
// connection_limit has the same delay.
const (
	holdRefused = time.Second
	maxRefused  = 2048
)

// listener accepts a bounded number of connections. At a limit, a new connection replaces the
// longest-idle connection of the address with the most idle connections. Clients that open
// connections without using them therefore replace their own, and lock out neither the kubelet nor
// the API server. A busy connection is never replaced.
type listener struct {
	net.Listener

	mu   sync.Mutex
	open map[*connection]struct{}
	// addresses has the addresses with open connections.
	addresses map[string]*address
	// refused is the number of refused connections that are held.
	refused atomic.Int64
}

// address counts the connections of an address.
type address struct {
	host       string
	open, idle int
}

// isBehind reports whether the address has so few idle connections that it still has fewer than the
// other one after it has replaced one of them. Otherwise both could replace each other's all the
// time. An address without idle connections always is.
func (a *address) isBehind(other *address) bool {
	return a != other && (a.idle == 0 || a.idle+1 < other.idle)
}

// connection is busy while the operator processes its request. While the request waits for memory
// or for its turn, the connection is idle.
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

func newListener(inner net.Listener) *listener {
	return &listener{Listener: inner, open: map[*connection]struct{}{}, addresses: map[string]*address{}}
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

// enter adds a connection. At a limit, it also returns the connection to replace, or adds nothing
// if no connection can be replaced.
func (l *listener) enter(accepted net.Conn) (entered, replaced *connection) {
	now, host := time.Now(), hostOf(accepted.RemoteAddr().String())
	l.mu.Lock()
	defer l.mu.Unlock()
	from := l.addresses[host]
	if from == nil {
		from = &address{host: host}
	}
	if own := from.open >= maxPerAddress; own || len(l.open) >= maxConnections {
		replaced = l.longestIdle(func(c *connection) bool { return !own || c.from == from })
		if replaced == nil || now.Sub(replaced.since) < replaceable && !from.isBehind(replaced.from) {
			return nil, nil
		}
		l.remove(replaced)
	}
	entered = &connection{Conn: accepted, of: l, from: from, since: now}
	entered.context, entered.leave = context.WithCancel(context.Background())
	l.open[entered], l.addresses[host] = struct{}{}, from
	from.open++
	from.idle++
	return entered, replaced
}

// longestIdle returns the longest-idle candidate of the address with the most idle connections, or
// nil if all are busy. The caller holds the lock.
func (l *listener) longestIdle(candidate func(*connection) bool) (longest *connection) {
	for c := range l.open {
		if c.busy || !candidate(c) {
			continue
		}
		if longest == nil || c.from.idle > longest.from.idle || c.from.idle == longest.from.idle && c.since.Before(longest.since) {
			longest = c
		}
	}
	return longest
}

// remove removes a connection, unless it is removed already. The caller holds the lock.
func (l *listener) remove(c *connection) {
	if _, found := l.open[c]; !found {
		return
	}
	delete(l.open, c)
	c.from.open--
	if !c.busy {
		c.from.idle--
	}
	if c.from.open == 0 {
		delete(l.addresses, c.from.host)
	}
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
	if _, open := c.of.open[c]; open && c.busy != busy {
		if busy {
			c.from.idle--
		} else {
			c.from.idle++
		}
	}
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

// AddressOf returns the IP address of the client of a request, or "" if there is no connection, in
// tests.
func AddressOf(ctx context.Context) string {
	if c, ok := ctx.Value(connectionKey{}).(*connection); ok {
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
