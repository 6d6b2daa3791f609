package nginxconf

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/example/nginx-operator/internal/defaults"
)

// listen is one listen directive.
type listen struct {
	*directive
	// address is what the socket is bound to: an IP address or "*" or "[::]".
	address string
	// from and to are the ports; most often they are the same.
	from, to int32
	options  []string
}

func (l listen) has(option string) bool { return slices.Contains(l.options, option) }

// reaches tells whether a client outside of the Pod reaches the port here, over TCP.
func (l listen) reaches(port int32) bool {
	return l.from <= port && port <= l.to && !l.has("quic") && (l.address == "*" || l.address == "[::]")
}

// Options of listen: those that any number of servers may set for an address, and those that only one may.
var (
	sharedOptions = []string{"default_server", "default", "ssl", "http2", "quic", "proxy_protocol"}
	socketFlags   = []string{"bind", "deferred", "reuseport"}
	socketValues  = []string{"setfib", "fastopen", "backlog", "rcvbuf", "sndbuf", "accept_filter", "ipv6only", "so_keepalive"}
)

// listens returns what a server listens on, without what cannot be read.
func (c *checker) listens(server *directive) []listen {
	var out []listen
	for _, d := range c.children(server, "listen") {
		if l, reason := parseListen(d); reason == "" {
			out = append(out, l)
		}
	}
	return out
}

// parseListen reads a listen directive, and gives the reason where it cannot be used.
func parseListen(d *directive) (listen, string) {
	l := listen{directive: d, address: "*", options: d.Args[1:]}
	text := d.arg(0)
	if strings.HasPrefix(text, "unix:") {
		return l, "a socket in the file system outlives a container that crashed, and keeps the next from starting; listen on 127.0.0.1 and a port"
	}
	host, port := text, ""
	if i := strings.LastIndex(text, ":"); i >= 0 && i > strings.LastIndex(text, "]") {
		host, port = text[:i], text[i+1:]
	} else if text != "" && strings.Trim(text, "0123456789-") == "" {
		host, port = "*", text
	} else {
		port = "80"
	}
	first, last, isRange := strings.Cut(port, "-")
	if !isRange {
		last = first
	}
	from, errFrom := strconv.ParseInt(first, 10, 32)
	to, errTo := strconv.ParseInt(last, 10, 32)
	if errFrom != nil || errTo != nil || from < 1 || to > 65535 || from > to {
		return l, fmt.Sprintf("%s has no port from 1 to 65535; write for example `listen 8080;`", text)
	}
	l.from, l.to = int32(from), int32(to) //nolint:gosec // both are at most 65535
	switch host {
	case "*", "0.0.0.0":
		return l, ""
	case "localhost":
		l.address = "127.0.0.1"
		return l, ""
	}
	address, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(host, "["), "]"))
	switch {
	case err == nil && address.IsUnspecified():
		l.address = "[::]"
		return l, ""
	case err == nil && address.IsLoopback():
		l.address = host
		return l, ""
	}
	return l, fmt.Sprintf("a Pod does not have the address %s; write `listen %s;` and choose between servers with server_name", host, port)
}

// socket is what only one server may set options of.
type socket struct {
	address  string
	from, to int32
	udp      bool
}

// checkListens looks at each listen directive, and at those of all servers together.
func (c *checker) checkListens() {
	health := defaults.HealthPort(c.spec)
	defaultOf, optionsOf, dual := map[socket]*directive{}, map[socket]*directive{}, map[int32]*directive{}
	var all []listen
	for _, server := range c.topServers() {
		own := map[socket]bool{}
		for _, d := range c.children(server, "listen") {
			l, reason := parseListen(d)
			if reason != "" {
				c.refuse(d, "%s", reason)
				continue
			}
			all = append(all, l)
			c.checkOptions(l)
			if l.from <= health && health <= l.to {
				c.refuse(d, "port %d is where the operator's own server answers the kubelet's probes; choose another port", health)
			}
			if l.has("ipv6only=off") {
				dual[l.from] = d
			}
			c.checkSockets(l, own, defaultOf, optionsOf)
		}
		if len(c.children(server, "listen")) == 0 && !slices.ContainsFunc(server.Block, isInclude) {
			c.warn(server, "it has no listen, so nginx listens on port 8000 for it; add for example `listen %d;`", defaults.Ports(c.spec)[0].Port)
		}
	}
	for _, l := range all {
		if other, found := dual[l.from]; found && l.address == "*" {
			c.refuse(l.directive, "line %d listens on port %d for IPv4 too (ipv6only=off); remove one of them", other.Line, l.from)
		}
	}
}

// topServers returns the server blocks; in an upstream a server is something else.
func (c *checker) topServers() []*directive { return c.children(nil, "server") }

func (c *checker) checkSockets(l listen, own map[socket]bool, defaultOf, optionsOf map[socket]*directive) {
	at := socket{l.address, l.from, l.to, l.has("quic")}
	if own[at] {
		c.refuse(l.directive, "the server listens on %s already; remove one of the two", l.arg(0))
		return
	}
	own[at] = true
	if l.has("default_server") || l.has("default") {
		if earlier, found := defaultOf[at]; found {
			c.refuse(l.directive, "line %d has the default server of port %d; remove default_server from one of them", earlier.Line, l.from)
			return
		}
		defaultOf[at] = l.directive
	}
	if slices.ContainsFunc(l.options, isSocketOption) {
		if earlier, found := optionsOf[at]; found {
			c.refuse(l.directive, "line %d sets the socket's options (such as %s) already; set them once for each address", earlier.Line, earlier.arg(1))
			return
		}
		optionsOf[at] = l.directive
	}
}

func isSocketOption(option string) bool {
	key, _, hasValue := strings.Cut(option, "=")
	return hasValue && slices.Contains(socketValues, key) || !hasValue && slices.Contains(socketFlags, key)
}

func (c *checker) checkOptions(l listen) {
	for _, option := range l.options {
		if !slices.Contains(sharedOptions, option) && !isSocketOption(option) {
			c.refuseIfKnown(l.directive, "it has no parameter %s; correct or remove it", option)
		}
	}
	switch {
	case l.has("http2") && c.release.minor >= 25:
		c.warn(l.directive, "the parameter http2 is deprecated; remove it and write `http2 on;` in the server")
	case l.has("quic"):
		c.warn(l.directive, "QUIC needs UDP, and the Service serves TCP only, so nothing arrives there")
	}
}

// declared is a port of the spec.
type declared struct {
	port int32
	tls  bool
	// label names the port with its field, as a user writes it.
	label string
}

func (c *checker) declared() []declared {
	var out []declared
	for i, port := range defaults.Ports(c.spec) {
		label := fmt.Sprintf("spec.ports[%d].port %d", i, port.Port)
		if len(c.spec.Ports) == 0 {
			label = fmt.Sprintf("port %d (the default of spec.ports)", port.Port)
		}
		out = append(out, declared{port.Port, false, label})
	}
	for i, tls := range defaults.TLS(c.spec) {
		if tls.Port != nil {
			out = append(out, declared{*tls.Port, true, fmt.Sprintf("spec.tls[%d].port %d", i, *tls.Port)})
		}
	}
	return out
}

// checkPorts compares what the servers listen on with what the spec declares.
func (c *checker) checkPorts() {
	var all []listen
	for _, server := range c.topServers() {
		all = append(all, c.listens(server)...)
		if len(c.children(server, "listen")) == 0 {
			all = append(all, listen{directive: server, address: "*", from: 8000, to: 8000})
		}
	}
	ports := c.declared()
	for _, port := range ports {
		c.checkDeclared(port, all)
	}
	told := map[int32]bool{}
	for _, l := range all {
		known := slices.ContainsFunc(ports, func(p declared) bool { return l.from <= p.port && p.port <= l.to })
		if known || told[l.from] || l.Directive.Directive != "listen" || l.from == defaults.HealthPort(c.spec) {
			continue
		}
		told[l.from] = true
		field := "spec.ports"
		if l.has("ssl") {
			field = "spec.tls"
		}
		switch unreachable := l.address != "*" && l.address != "[::]"; {
		case l.from < 1024 && !c.lowPorts(ports):
			c.refuse(l.directive, "nginx may not listen on port %d without privileges; declare it in %s, or use a port from 1024 on", l.from, field)
		case !unreachable && !l.has("quic"):
			c.warn(l.directive, "port %d is not declared, so the Service does not serve it; add it to %s", l.from, field)
		}
	}
}

// lowPorts tells whether the Pods may listen on ports below 1024: they may on all when one is declared.
func (c *checker) lowPorts(ports []declared) bool {
	return slices.ContainsFunc(ports, func(p declared) bool { return p.port < 1024 })
}

func (c *checker) checkDeclared(port declared, all []listen) {
	add, otherwise := fmt.Sprintf("listen %d;", port.port), "declare the ports that the servers listen on"
	if port.tls {
		add, otherwise = fmt.Sprintf("listen %d ssl;", port.port), "remove the port, so that the certificate is only mounted"
	}
	reached := false
	for _, l := range all {
		if !l.reaches(port.port) {
			continue
		}
		reached = true
		switch {
		case port.tls && !l.has("ssl"):
			c.refuse(l.directive, "%s is for TLS; write `%s`", port.label, add)
		case !port.tls && l.has("ssl"):
			c.refuse(l.directive, "%s is for plain HTTP; declare the port in spec.tls instead, or remove ssl", port.label)
		}
	}
	if reached {
		return
	}
	problem := Problem{Directive: "listen", Message: fmt.Sprintf("%s: no server listens on it; add `%s` to a server, or %s", port.label, add, otherwise)}
	if c.unseen {
		problem.Message = fmt.Sprintf("%s: no server in the text listens on it; be sure that an included file does", port.label)
		c.warnings = append(c.warnings, problem)
		return
	}
	c.problems = append(c.problems, problem)
}
