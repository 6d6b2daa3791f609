package nginxconf

import (
	"net"
	"net/netip"
	"regexp"
	"slices"
	"strings"
)

// passDirectives are the directives that can have the server in a variable.
var passDirectives = []string{"proxy_pass", "grpc_pass", "fastcgi_pass", "uwsgi_pass", "scgi_pass", "memcached_pass"}

// defaultPorts are the ports of URLs without a port, by scheme.
var defaultPorts = map[string]string{"http": "80", "https": "443", "grpc": "80", "grpcs": "443"}

const (
	// maxValues is the maximum number of values of a variable, and of a URL, that are compared.
	maxValues = 16
	// maxExpansions is the maximum number of variables that are replaced in a URL.
	maxExpansions = 8
	// passBudget limits the work for all URLs, in bytes of their values. passCost is the work for a
	// URL itself.
	passBudget, passCost = MaxBytes, 64
)

var (
	ofVariable = regexp.MustCompile(`\$(?:\{\w+\}|\w+)`)
	hostName   = regexp.MustCompile(`^[A-Za-z0-9_.-]+$`)
	withPort   = regexp.MustCompile(`:[0-9]+$`)
	// uriVariables start with a slash or a question mark, or are empty. The host ends before them.
	uriVariables = []string{"request_uri", "uri", "document_uri", "is_args"}
)

// passes checks URLs whose host nginx resolves for each request.
type passes struct {
	// known are the hosts that nginx resolves at startup: names of upstream blocks, and hosts with
	// ports of URLs without a variable.
	known map[string]bool
	// sets are the set directives of each server and variable.
	sets   map[blockAndName][]*directive
	budget int
}

// checkPasses warns of host names that nginx resolves for each request without a resolver. nginx
// starts, and answers each such request with 502. It resolves the host of each URL with a variable
// unless the host is an address or an upstream.
func (c *checker) checkPasses() {
	for block := range c.unseenIn {
		if !c.hasPass(block) {
			return // the file can have a URL, a location with one, or an upstream
		}
	}
	var variable []*directive
	for _, name := range passDirectives {
		variable = append(variable, slices.DeleteFunc(slices.Clone(c.named[name]), isLiteral)...)
	}
	if len(variable) == 0 {
		return
	}

	p := passes{c.knownHosts(), c.setDirectives(), passBudget}
	for _, d := range variable {
		if p.budget -= passCost; p.budget < 0 {
			return
		}
		if c.isInUnseen(d) {
			continue // the file can have a resolver, or set the variable
		}
		if host := p.unresolved(d); host != "" && !c.hasResolver(d) {
			c.warn(d, "nginx answers 502 (no resolver defined to resolve %s), because it resolves a value with a variable for each request; "+
				"write the name of an upstream block, without a port, or add a resolver and write the full name of the host", host)
		}
	}
}

// hasPass reports whether a block has a URL of its own. nginx then rejects another one in an
// included file.
func (c *checker) hasPass(block *directive) bool {
	return slices.ContainsFunc(passDirectives, func(name string) bool { return len(c.children(block, name)) > 0 })
}

// isInUnseen reports whether a block around a directive includes a file whose content is unknown.
func (c *checker) isInUnseen(d *directive) bool {
	for block := d.parent; block != nil; block = block.parent {
		if c.unseenIn[block] {
			return true
		}
	}
	return false
}

// isLiteral reports whether the first argument of a directive has no variable.
func isLiteral(d *directive) bool { return !strings.Contains(d.first(), "$") }

func (c *checker) knownHosts() map[string]bool {
	out := map[string]bool{}
	for _, d := range c.named["upstream"] {
		out[strings.ToLower(d.first())] = true
	}
	for _, name := range passDirectives {
		for _, d := range c.named[name] {
			if isLiteral(d) {
				out[serverIn(d.first()).key()] = true
			}
		}
	}
	return out
}

func (c *checker) setDirectives() map[blockAndName][]*directive {
	out := map[blockAndName][]*directive{}
	for _, d := range c.named["set"] {
		at := blockAndName{serverAround(d), nameOf(d.first())}
		if len(out[at]) <= maxValues { // one more than valuesFor uses
			out[at] = append(out[at], d)
		}
	}
	return out
}

// nameOf returns the name of a variable, which nginx compares in lower case.
func nameOf(variable string) string { return strings.ToLower(strings.Trim(variable, "${}")) }

func serverAround(d *directive) *directive {
	for d != nil && d.name != "server" {
		d = d.parent
	}
	return d
}

// hasResolver reports whether a block around a directive, or the http context, has a resolver.
func (c *checker) hasResolver(d *directive) bool {
	for block := d.parent; block != nil; block = block.parent {
		if len(c.children(block, "resolver")) > 0 {
			return true
		}
	}
	return len(c.children(nil, "resolver")) > 0
}

// unresolved returns a host of the URL of a directive that nginx cannot resolve without a resolver,
// or "" if none is known. It replaces variables by the values that set directives give them.
func (p *passes) unresolved(d *directive) string {
	urls := []string{d.first()}
	for range maxExpansions {
		var next []string
		for _, url := range urls {
			server := serverIn(url)
			at := ofVariable.FindStringIndex(url[server.start:server.end])
			if at == nil {
				if p.needsResolver(server) {
					return server.host
				}
				continue
			}
			before, name, after := url[:server.start+at[0]], url[server.start+at[0]:server.start+at[1]], url[server.start+at[1]:]
			for _, value := range p.valuesFor(d, nameOf(name)) {
				next = append(next, before+value+after)
				p.budget -= len(next[len(next)-1])
			}
		}
		if len(next) == 0 || len(next) > maxValues || p.budget < 0 {
			return ""
		}
		urls = next
	}
	return ""
}

// needsResolver reports whether the host of a URL is a name that nginx has not resolved at startup.
// The name of an upstream block represents the block only without a port.
func (p *passes) needsResolver(server server) bool {
	if server.port == "" && strings.Contains(server.scheme, "$") {
		return false // the port is unknown
	}
	_, err := netip.ParseAddr(server.host)
	isUpstream := server.port == "" && p.known[strings.ToLower(server.host)]
	return err != nil && hostName.MatchString(server.host) && !isUpstream && !p.known[server.key()]
}

// valuesFor returns the values that set directives give a variable for the requests of a directive:
// the values of its location, or else those of its server, or else those of all locations, because
// of internal redirects. It returns nothing if there are too many.
func (p *passes) valuesFor(d *directive, name string) []string {
	server := serverAround(d)
	all := p.sets[blockAndName{server, name}]
	if len(all) > maxValues {
		return nil
	}

	var out []string
	for _, scope := range []*directive{rewriteScope(d), server} {
		always := false
		for _, set := range all {
			if rewriteScope(set) == scope {
				out, always = append(out, set.args[1]), always || set.parent == scope
			}
		}
		if always {
			return out
		}
	}
	out = nil
	for _, set := range all {
		out = append(out, set.args[1])
	}
	return out
}

// server is the host and the port of a URL, with the scheme of the URL. Both are in the URL from
// start to end. The host of a Unix socket is "".
type server struct {
	scheme, host, port string
	start, end         int
}

// key identifies the server among the hosts that nginx resolves at startup.
func (s server) key() string {
	port := s.port
	if port == "" {
		port = defaultPorts[s.scheme]
	}
	return net.JoinHostPort(strings.ToLower(s.host), port)
}

// serverIn returns the server of a URL, which can have no scheme. Variables are part of it, unless
// the host ends before them.
func serverIn(url string) server {
	out := server{end: len(url)}
	if at := strings.Index(url, "://"); at >= 0 {
		out.scheme, out.start = url[:at], at+len("://")
	}
	if at := strings.IndexAny(url[out.start:], "/?"); at >= 0 {
		out.end = out.start + at
	}
	for _, at := range ofVariable.FindAllStringIndex(url[out.start:out.end], maxExpansions) {
		before, name := url[out.start:out.start+at[0]], url[out.start+at[0]:out.start+at[1]]
		if slices.Contains(uriVariables, nameOf(name)) || withPort.MatchString(before) {
			out.end = out.start + at[0]
			break
		}
	}

	authority := url[out.start:out.end]
	if strings.HasPrefix(authority, "unix:") {
		return out
	}
	if host, port, err := net.SplitHostPort(authority); err == nil {
		out.host, out.port = host, port
		return out
	}
	out.host = strings.Trim(authority, "[]")
	return out
}
