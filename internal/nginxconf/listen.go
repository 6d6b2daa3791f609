package nginxconf

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// listen is a listen directive.
type listen struct {
	*directive
	// everywhere reports whether the socket is bound to all addresses, so that clients outside the
	// Pod reach it.
	everywhere          bool
	from, to            int32 // the first and the last port, which are usually equal
	tls, http2, quicUDP bool
}

// reaches reports whether clients outside the Pod reach a port through this directive over TCP.
func (l *listen) reaches(port int32) bool { return l.holds(port) && !l.quicUDP && l.everywhere }

func (l *listen) holds(port int32) bool { return l.from <= port && port <= l.to }

// listens returns the valid listen directives of a server with known values.
func (c *checker) listens(server *directive) []listen {
	var listens []listen
	for _, d := range c.children(server, "listen") {
		if l, ok := parseListen(d); ok && !d.unknown {
			listens = append(listens, l)
		}
	}
	return listens
}

// parseListen parses a listen directive. It returns false for a Unix socket, or if the port is
// invalid.
func parseListen(d *directive) (listen, bool) {
	l := listen{
		directive: d, tls: slices.Contains(d.args[1:], "ssl"),
		http2: slices.Contains(d.args[1:], "http2"), quicUDP: slices.Contains(d.args[1:], "quic"),
	}

	host, port := d.first(), ""
	if strings.HasPrefix(host, "unix:") {
		return l, false
	}

	if i := strings.LastIndex(host, ":"); i >= 0 && i > strings.LastIndex(host, "]") {
		host, port = host[:i], host[i+1:]
	} else if host != "" && strings.Trim(host, "0123456789-") == "" {
		host, port = "*", host
	} else {
		port = "80"
	}

	first, last, isRange := strings.Cut(port, "-")
	if !isRange {
		last = first
	}

	from, errFrom := strconv.ParseUint(first, 10, 16)
	to, errTo := strconv.ParseUint(last, 10, 16)
	l.from, l.to = int32(from), int32(to) //nolint:gosec // both have 16 bits

	address, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(host, "["), "]"))
	l.everywhere = host == "*" || err == nil && address.IsUnspecified()
	return l, errFrom == nil && errTo == nil && from > 0
}

// String returns the directive without parameters except for ssl.
func (l *listen) String() string {
	if l.tls {
		return "listen " + quoted(l.first()) + " ssl"
	}
	return "listen " + quoted(l.first())
}

// address returns the address and the port in nginx's messages.
func (l *listen) address() string {
	if l.everywhere && !strings.HasPrefix(l.first(), "[") {
		return fmt.Sprintf("0.0.0.0:%d", l.from)
	}
	return quoted(l.first())
}

// checkListens checks each listen directive by itself.
func (c *checker) checkListens() {
	own := c.ownPorts()
	for _, server := range c.topServers() {
		for _, d := range c.children(server, "listen") {
			l, isValid := parseListen(d)
			switch {
			case strings.HasPrefix(d.first(), "unix:"):
				c.warn(d, "listen %s: after a crash, the socket remains, and bind() fails (98: Address already in use). "+
					"Listen on 127.0.0.1 and a port", d.first())
			case !isValid || taken(l, own) != nil:
			case l.http2 && c.release.minor >= 25 && !c.release.guessed:
				c.warn(d, `the "listen ... http2" directive is deprecated, use the "http2" directive instead: `+
					"write `http2 on;` in the server")
			case l.quicUDP:
				c.warn(d, "listen %s quic: QUIC needs UDP, and the Service has only TCP ports. Remove it", d.first())
			}
		}
	}
}

// topServers returns the server blocks, without the servers of upstreams.
func (c *checker) topServers() []*directive { return c.children(nil, "server") }
