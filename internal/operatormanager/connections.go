package operatormanager

import (
	"net"
	"sync"
	"time"
)

const (
	// maxConnections bounds the connections of all clients together, handshakes that are under way included. Each costs up to a
	// hundred KiB.
	maxConnections = 512
	// maxConnectionsPerClient bounds those of one address: more than it may have requests, because an API server opens one for each
	// and keeps some.
	maxConnectionsPerClient = 192
)

// connections is a listener with so many connections at most, and so many of one address. Where there is no room for another
// one, the longest silent of the address with the most silent ones makes room for it: whoever opens connections and says nothing
// pushes out their own, and nobody who asks and gets an answer.
type connections struct {
	net.Listener

	mu        sync.Mutex
	byAddress map[string]map[*connection]struct{}
	open      int
}

// connection is one of them.
type connection struct {
	net.Conn
	all     *connections
	address string
	// since is when the client was last heard of, answering how many of its requests are being answered.
	since     time.Time
	answering int
}

func newConnections(listener net.Listener) *connections {
	return &connections{Listener: listener, byAddress: map[string]map[*connection]struct{}{}}
}

// Accept implements net.Listener.
func (l *connections) Accept() (net.Conn, error) {
	for {
		accepted, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		entered, left := l.enter(accepted)
		if left != nil {
			reset(left.Conn)
		}
		if entered != nil {
			return entered, nil
		}
		reset(accepted)
	}
}

// enter adds a connection, nil where there is no room, and returns the one that had to make room for it.
func (l *connections) enter(accepted net.Conn) (entered, left *connection) {
	address := hostOf(accepted.RemoteAddr().String())
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.byAddress[address]) >= maxConnectionsPerClient {
		if left = l.longestSilent(address); left == nil {
			return nil, nil
		}
	} else if l.open >= maxConnections {
		if left = l.longestSilent(l.mostSilent()); left == nil {
			return nil, nil
		}
	}
	if left != nil {
		l.remove(left)
	}
	entered = &connection{Conn: accepted, all: l, address: address, since: time.Now()}
	if l.byAddress[address] == nil {
		l.byAddress[address] = map[*connection]struct{}{}
	}
	l.byAddress[address][entered] = struct{}{}
	l.open++
	return entered, left
}

// mostSilent returns the address that has the most connections on which nothing is being answered. The lock is held.
func (l *connections) mostSilent() string {
	most, address := 0, ""
	for at, of := range l.byAddress {
		silent := 0
		for c := range of {
			if c.answering == 0 {
				silent++
			}
		}
		if silent > most {
			most, address = silent, at
		}
	}
	return address
}

// longestSilent returns the connection of an address that was silent the longest, nil where none is. The lock is held.
func (l *connections) longestSilent(address string) *connection {
	var longest *connection
	for c := range l.byAddress[address] {
		if c.answering == 0 && (longest == nil || c.since.Before(longest.since)) {
			longest = c
		}
	}
	return longest
}

// remove forgets a connection. The lock is held.
func (l *connections) remove(c *connection) {
	of := l.byAddress[c.address]
	if _, found := of[c]; !found {
		return
	}
	l.open--
	if delete(of, c); len(of) == 0 {
		delete(l.byAddress, c.address)
	}
}

// heard notes that the client has said something.
func (c *connection) heard() {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	c.since = time.Now()
}

// answer notes that a request was read whole. Until the function that it returns is called, the connection makes room for nobody.
func (c *connection) answer() (done func()) {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	c.answering++
	return func() {
		c.all.mu.Lock()
		defer c.all.mu.Unlock()
		c.answering--
		c.since = time.Now()
	}
}

// Close implements net.Conn.
func (c *connection) Close() error {
	c.all.mu.Lock()
	c.all.remove(c)
	c.all.mu.Unlock()
	return c.Conn.Close()
}

// reset ends a connection without waiting for its client.
func reset(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.Close()
}

func hostOf(address string) string {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	return host
}
