package nginxconf

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/defaults"
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

// listens returns the valid listen directives of a server.
func (c *checker) listens(server *directive) []listen {
	var listens []listen
	for _, d := range c.children(server, "listen") {
		if l, ok := parseListen(d); ok {
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

// ownPort is a port on which a server of the operator listens in the Pods, and the server's name.
type ownPort struct {
	number int32
	name   string
}

// ownPorts returns the operator's ports in the Pods of the spec.
func (c *checker) ownPorts() []ownPort {
	return slices.DeleteFunc([]ownPort{
		{defaults.HealthPort(c.spec), "the operator's own server for the kubelet's probes"},
		{defaults.StatusPort(c.spec), "the operator's own server for the metrics of nginx (spec.monitoring)"},
		{defaults.MetricsPort(c.spec), "the exporter (spec.monitoring)"},
	}, func(own ownPort) bool { return own.number == 0 })
}

// taken returns the operator's port that a listen directive uses, or nil if it uses none.
func taken(l listen, ports []ownPort) *ownPort {
	if at := slices.IndexFunc(ports, func(own ownPort) bool { return l.holds(own.number) }); at >= 0 {
		return &ports[at]
	}
	return nil
}

// checkListens checks each listen directive.
func (c *checker) checkListens() {
	own, usual := c.ownPorts(), declared{port: v1alpha2.DefaultPort}
	if ports := c.declared(); len(ports) > 0 {
		usual = ports[0]
	}

	for _, server := range c.topServers() {
		if len(c.children(server, "listen")) == 0 && !slices.ContainsFunc(server.block, isInclude) {
			c.warn(server, "it has no listen, so nginx listens on port 8000 for it; add for example `%s`", usual.directive())
		}
		for _, d := range c.children(server, "listen") {
			l, isValid := parseListen(d)
			user := taken(l, own)
			switch {
			case strings.HasPrefix(d.first(), "unix:"):
				c.warn(d, "a socket in the file system outlives a container that crashed, and keeps the next from starting; "+
					"listen on 127.0.0.1 and a port")
			case !isValid:
			case user != nil:
				c.refuse(d, "port %d is used by %s; choose another port", user.number, user.name)
			case l.http2 && c.release.minor >= 25 && !c.release.guessed:
				c.warn(d, "the parameter http2 is deprecated; remove it and write `http2 on;` in the server")
			case l.quicUDP:
				c.warn(d, "QUIC needs UDP, and the Service serves TCP only, so nothing arrives there")
			}
		}
	}
}

// topServers returns the server blocks, without the servers of upstreams.
func (c *checker) topServers() []*directive { return c.children(nil, "server") }

// declared is a port of the spec.
type declared struct {
	port int32
	// tls reports whether the port is for TLS, and certificate whether it is a port of spec.tls.
	tls, certificate bool
	label            string // the field and its number
}

// directive returns the listen directive for the port.
func (p declared) directive() string {
	if p.tls {
		return fmt.Sprintf("listen %d ssl;", p.port)
	}
	return fmt.Sprintf("listen %d;", p.port)
}

func (c *checker) declared() []declared {
	var ports []declared
	for i, port := range defaults.Ports(c.spec) {
		label := fmt.Sprintf("spec.ports[%d].%s %d", i, fieldOf(port.TargetPort), defaults.PortListens(port))
		if c.spec.Ports == nil {
			label = fmt.Sprintf("port %d (the default of spec.ports)", port.Port)
		}
		ports = append(ports, declared{defaults.PortListens(port), defaults.IsTLS(port), false, label})
	}

	shared := map[int32]bool{}
	for i, tls := range defaults.TLS(c.spec) {
		if number := defaults.TLSListens(tls); tls.Port != nil && !shared[number] {
			shared[number] = true
			label := fmt.Sprintf("spec.tls[%d].%s %d", i, fieldOf(tls.TargetPort), number)
			ports = append(ports, declared{number, true, true, label})
		}
	}

	return ports
}

// fieldOf returns the field that has the number on which nginx listens.
func fieldOf(targetPort *int32) string {
	if targetPort != nil {
		return "targetPort"
	}
	return "port"
}

// checkPorts compares the listen directives with the ports of the spec.
func (c *checker) checkPorts() {
	var all []listen
	for _, server := range c.topServers() {
		all = append(all, c.listens(server)...)
		if len(c.children(server, "listen")) == 0 {
			all = append(all, listen{directive: server, everywhere: true, from: 8000, to: 8000})
		}
	}

	ports, own := c.declared(), c.ownPorts()
	low := slices.ContainsFunc(ports, func(p declared) bool { return p.port < 1024 })
	for _, port := range ports {
		c.checkDeclared(port, all)
	}

	reported := map[int32]bool{}
	for i := range all {
		l := &all[i]
		known := slices.ContainsFunc(ports, func(p declared) bool { return l.holds(p.port) })
		if known || reported[l.from] || l.name != "listen" || taken(*l, own) != nil {
			continue
		}

		reported[l.from] = true
		field := "spec.ports"
		if l.tls {
			field = "spec.tls"
		}

		switch {
		// If the spec has one low port, Pods can listen on all low ports.
		case l.from < 1024 && !low:
			c.refuse(l.directive, "nginx cannot listen on port %d without privileges; declare it in %s, or use a port from 1024 on", l.from, field)
		case l.everywhere && !l.quicUDP:
			c.warn(l.directive, "port %d is not declared, so the Service does not serve it; add it to %s", l.from, field)
		}
	}
}

func (c *checker) checkDeclared(port declared, all []listen) {
	// All servers can listen on all ports of the spec, so the message is formatted once.
	mismatch := port.label + " is for plain HTTP; set its appProtocol to https, declare the port in spec.tls instead, or remove ssl"
	if port.tls {
		mismatch = fmt.Sprintf("%s is for TLS; write `%s`", port.label, port.directive())
	}

	reached := false
	for i := range all {
		l := &all[i]
		if !l.reaches(port.port) {
			continue
		}

		reached = true
		if port.tls != l.tls {
			c.refuse(l.directive, mismatch)
		}
	}

	otherwise := "declare the ports that the servers listen on"
	if port.certificate {
		otherwise = "remove the port, so that the certificate is only mounted"
	}

	switch {
	case reached:
	case c.unseen:
		c.warnings.add(Problem{Directive: "listen", Message: port.label +
			": no server in the text listens on it; be sure that an included file does"})
	default:
		c.problems.add(Problem{Directive: "listen", Message: fmt.Sprintf(
			"%s: no server listens on it; add `%s` to a server, or %s", port.label, port.directive(), otherwise)})
	}
}
