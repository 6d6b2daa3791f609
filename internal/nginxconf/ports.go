package nginxconf

import (
	"fmt"
	"slices"
	"strings"

	"github.com/example/nginx-operator/internal/defaults"
)

// ownPort is a port on which a server of the operator listens in the Pods, and what it is for.
type ownPort struct {
	number int32
	use    string
}

// ownPorts returns the operator's ports in the Pods of the spec.
func (c *checker) ownPorts() []ownPort {
	return slices.DeleteFunc([]ownPort{
		{defaults.HealthPort(c.spec), "the probes of the kubelet"},
		{defaults.StatusPort(c.spec), "the status page of nginx (spec.monitoring)"},
		{defaults.MetricsPort(c.spec), "the metrics exporter (spec.monitoring)"},
	}, func(own ownPort) bool { return own.number == 0 })
}

// taken returns the operator's port that a listen directive uses, or nil if it uses none.
func taken(l listen, ports []ownPort) *ownPort {
	if at := slices.IndexFunc(ports, func(own ownPort) bool { return l.holds(own.number) }); at >= 0 {
		return &ports[at]
	}
	return nil
}

// declared is a port of the spec.
type declared struct {
	port int32
	// tls reports whether the port is for TLS.
	tls bool
	// field has the number. It is empty for the default of spec.ports.
	field string
}

// directive returns the listen directive for the port.
func (p declared) directive() string {
	if p.tls {
		return fmt.Sprintf("`listen %d ssl;`", p.port)
	}
	return fmt.Sprintf("`listen %d;`", p.port)
}

// String returns the field and the number.
func (p declared) String() string {
	if p.field == "" {
		return fmt.Sprintf("port %d (the default of spec.ports)", p.port)
	}
	return fmt.Sprintf("%s %d", p.field, p.port)
}

func (c *checker) declared() []declared {
	var ports []declared
	for i, port := range defaults.Ports(c.spec) {
		field := fmt.Sprintf("spec.ports[%d].%s", i, fieldOf(port.TargetPort))
		if c.spec.Ports == nil {
			field = ""
		}
		ports = append(ports, declared{defaults.PortListens(port), defaults.IsTLS(port), field})
	}

	shared := map[int32]bool{}
	for i, tls := range defaults.TLS(c.spec) {
		if number := defaults.TLSListens(tls); tls.Port != nil && !shared[number] {
			shared[number] = true
			ports = append(ports, declared{number, true, fmt.Sprintf("spec.tls[%d].%s", i, fieldOf(tls.TargetPort))})
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

// portCheck compares the listen directives with the ports of the spec.
type portCheck struct {
	*checker
	ports []declared
	own   []ownPort
	// missing are the ports on which no server listens. A listen directive that is reported takes
	// the port that it was meant for, because one mistake causes both.
	missing []declared
	// usual is the listen directive for the first port.
	usual string
}

// checkPorts reports ports of the spec on which no server listens, and listen directives without a
// port of the spec.
func (c *checker) checkPorts() {
	var all []listen
	for _, server := range c.topServers() {
		all = append(all, c.listens(server)...)
		if len(c.children(server, "listen")) == 0 {
			all = append(all, listen{directive: server, everywhere: true, from: 8000, to: 8000})
		}
	}

	p := portCheck{checker: c, ports: c.declared(), own: c.ownPorts(), usual: "`listen 8080;`"}
	if len(p.ports) > 0 {
		p.usual = p.ports[0].directive()
	}

	for _, port := range p.ports {
		if !c.isReached(port, all) {
			p.missing = append(p.missing, port)
		}
	}
	if slices.ContainsFunc(c.named["listen"], func(d *directive) bool { return d.unknown }) {
		p.missing = nil
	}
	if c.unseen {
		p.warnOfMissing()
	}

	reported := map[int32]bool{}
	for i := range all {
		if l := &all[i]; l.name != "listen" {
			p.checkWithoutListen(l.directive)
		} else if !reported[l.from] {
			reported[l.from] = p.checkListen(l)
		}
	}

	p.refuseMissing()
}

// isReached reports whether a server listens on a port of the spec. It refuses listen directives of
// this port with TLS instead of plain HTTP, or the reverse.
func (c *checker) isReached(port declared, all []listen) bool {
	// All servers can listen on all ports of the spec, so the message is formatted once.
	mismatch := fmt.Sprintf("listen %d ssl: %s is for plain HTTP. Remove ssl, or declare the port in spec.tls instead of spec.ports",
		port.port, port)
	if port.tls {
		mismatch = fmt.Sprintf("listen %d without ssl: %s is for TLS. Write %s", port.port, port, port.directive())
	}

	isReached := false
	for i := range all {
		l := &all[i]
		if !l.reaches(port.port) {
			continue
		}

		isReached = true
		if port.tls != l.tls {
			c.refuse(l.directive, mismatch)
		}
	}
	return isReached
}

// checkListen checks a listen directive, and reports whether other directives with its port need no
// message.
func (p *portCheck) checkListen(l *listen) bool {
	isMeant := func(port declared) bool { return port.tls == l.tls }
	isSame := func(port declared) bool { return l.holds(port.port) && !l.everywhere }
	own := taken(*l, p.own)

	switch {
	case own != nil:
		remedy := "Use another port"
		if port := p.take(isMeant); port != nil {
			remedy = "Write " + port.directive()
		}
		p.refuse(l.directive, "%s: the operator uses port %d for %s. %s", l.String(), own.number, own.use, remedy)
	case slices.ContainsFunc(p.missing, isSame):
		p.refuse(l.directive, "%s: clients outside of the Pod cannot reach this address. Write %s",
			l.String(), p.take(isSame).directive())
	case slices.ContainsFunc(p.ports, func(port declared) bool { return l.holds(port.port) }):
		return false
	default:
		return p.checkStray(l, isMeant)
	}
	return true
}

// checkStray checks a listen directive with a port that the spec does not have.
func (p *portCheck) checkStray(l *listen, isMeant func(declared) bool) bool {
	field, entry := "spec.ports", fmt.Sprintf("{name: NAME, port: %d}", l.from)
	if l.tls {
		field, entry = "spec.tls", fmt.Sprintf("{secretName: SECRETNAME, port: %d}", l.from)
	}

	isPublic := l.everywhere && !l.quicUDP
	var port *declared
	if isPublic {
		port = p.take(isMeant)
	}

	// If the spec has one low port, Pods can listen on all low ports.
	hasLow := slices.ContainsFunc(p.ports, func(port declared) bool { return port.port < 1024 })
	switch {
	case port != nil && port.field == "":
		p.refuse(l.directive, "%s is not in spec.ports (default %d). Add {name: http, port: %d} to spec.ports, or write %s",
			l.String(), port.port, l.from, port.directive())
	case port != nil:
		p.refuse(l.directive, "%s, but %s is %d. Write %s, or change %s to %d",
			l.String(), port.field, port.port, port.directive(), port.field, l.from)
	case l.from < 1024 && !hasLow:
		p.refuse(l.directive, "bind() to %s failed (13: Permission denied). Add %s to %s, or use a port above 1023",
			l.address(), entry, field)
	case isPublic:
		p.warn(l.directive, "%s is not in %s, so the Service does not serve it. Add %s to %s",
			l.String(), field, entry, field)
	default:
		return false
	}
	return true
}

// checkWithoutListen checks a server without a listen directive.
func (p *portCheck) checkWithoutListen(server *directive) {
	report := p.warn
	switch {
	case p.unseenIn[server] || slices.ContainsFunc(p.ports, func(port declared) bool { return port.port == 8000 }):
		return
	case p.take(func(port declared) bool { return !port.tls }) != nil:
		report = p.refuse
	}
	report(server, "no listen: nginx would use port 8000. Add %s", p.usual)
}

// take removes the first missing port that meets a condition, and returns it, or nil if there is
// none.
func (p *portCheck) take(condition func(declared) bool) *declared {
	at := slices.IndexFunc(p.missing, condition)
	if at < 0 {
		return nil
	}
	port := p.missing[at]
	p.missing = slices.Delete(p.missing, at, at+1)
	return &port
}

// warnOfMissing warns of ports on which only an included file may listen, and forgets them.
func (p *portCheck) warnOfMissing() {
	for _, port := range p.missing {
		p.warnings.add(Problem{Message: fmt.Sprintf(
			"no server in this text listens on %s. Verify that an included file has %s", port, port.directive())})
	}
	p.missing = nil
}

func (p *portCheck) refuseMissing() {
	for _, port := range p.missing {
		otherwise := "remove the port"
		switch {
		case port.field == "":
			otherwise = "set spec.ports to the ports of the servers"
		case strings.HasPrefix(port.field, "spec.tls"):
			otherwise = "remove the port, which leaves the certificate mounted"
		}
		p.problems.add(Problem{Message: fmt.Sprintf("no server listens on %s. Add %s to a server, or %s",
			port, port.directive(), otherwise)})
	}
}
