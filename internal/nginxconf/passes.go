package nginxconf

import (
	"cmp"
	"net"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"github.com/example/nginx-operator/internal/defaults"
)

// passDirectives are the directives that can have the server in a variable.
var passDirectives = []string{"proxy_pass", "grpc_pass", "fastcgi_pass", "uwsgi_pass", "scgi_pass", "memcached_pass"}

// defaultPorts are the ports of URLs without a port, by scheme.
var defaultPorts = map[string]string{"http": "80", "https": "443", "grpc": "80", "grpcs": "443"}

const (
	// maxValues limits the values of a variable, and of a URL, and maxExpansions the variables that
	// are replaced in a URL.
	maxValues, maxExpansions = 16, 8
	// passBudget limits the work for all URLs, in bytes. passCost is the work for a URL itself.
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
	if defaults.Nginx(c.spec).Resolver != nil {
		return
	}
	for block := range c.unseenIn {
		if !c.hasPass(block) {
			return // the file can have a URL, a location with one, or an upstream
		}
	}

	isUnseen := func(block *directive) bool { return c.unseenIn[block] } // can have a resolver, or set the variable
	hasResolver := func(block *directive) bool { return len(c.children(block, "resolver")) > 0 }

	p := passes{c.knownHosts(), c.setDirectives(), passBudget}
	for _, d := range slices.DeleteFunc(c.withNames(passDirectives...), isLiteral) {
		if p.budget -= passCost; p.budget < 0 {
			return
		}
		if isAnyAround(d, isUnseen) {
			continue
		}
		if host := p.unresolved(d); host != "" && !isAnyAround(d, hasResolver) {
			c.warn(d, "no resolver defined to resolve %s: nginx answers 502, because it resolves a URL with a variable at each request. "+
				"Set spec.nginx.resolver and write the full name of the host, or write the name of an upstream block without a port", host)
		}
	}
}

// checkResolvers warns of the DNS server that Docker gives its containers, which configurations for
// Docker Compose use.
func (c *checker) checkResolvers() {
	for _, d := range c.named["resolver"] {
		for _, arg := range d.args {
			if host, _, _ := strings.Cut(arg, ":"); host == "127.0.0.11" {
				c.warn(d, "%s is the DNS server of Docker, which Pods do not have: nginx answers 502. Remove it and set spec.nginx.resolver", arg)
			}
		}
	}
}

// hasPass reports whether a block has a URL of its own. nginx then rejects another one in an
// included file.
func (c *checker) hasPass(block *directive) bool {
	return slices.ContainsFunc(passDirectives, func(name string) bool { return len(c.children(block, name)) > 0 })
}

// isAnyAround reports whether a condition holds for a block around a directive, or for the http
// context, which is nil.
func isAnyAround(d *directive, holds func(block *directive) bool) bool {
	for block := d.parent; block != nil; block = block.parent {
		if holds(block) {
			return true
		}
	}
	return holds(nil)
}

// isLiteral reports whether the first argument of a directive has no variable.
func isLiteral(d *directive) bool { return !strings.Contains(d.first(), "$") }

func (c *checker) knownHosts() map[string]bool {
	known := map[string]bool{}
	for _, d := range c.named["upstream"] {
		known[strings.ToLower(d.first())] = true
	}

	for _, d := range c.withNames(passDirectives...) {
		if isLiteral(d) {
			known[serverIn(d.first()).key()] = true
		}
	}

	return known
}

func (c *checker) setDirectives() map[blockAndName][]*directive {
	sets := map[blockAndName][]*directive{}
	for _, d := range c.named["set"] {
		at := blockAndName{serverAround(d), nameOf(d.first())}
		if len(sets[at]) <= maxValues { // one more than valuesFor uses
			sets[at] = append(sets[at], d)
		}
	}
	return sets
}

// nameOf returns the name of a variable, which nginx compares in lower case.
func nameOf(variable string) string { return strings.ToLower(strings.Trim(variable, "${}")) }

func serverAround(d *directive) *directive {
	for d != nil && d.name != "server" {
		d = d.parent
	}
	return d
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

	var inScopes, values []string
	for _, scope := range []*directive{rewriteScope(d), server} {
		isAlwaysSet := false
		for _, set := range all {
			if rewriteScope(set) == scope {
				inScopes, isAlwaysSet = append(inScopes, set.args[1]), isAlwaysSet || set.parent == scope
			}
		}
		if isAlwaysSet {
			return inScopes
		}
	}

	for _, set := range all {
		values = append(values, set.args[1])
	}

	return values
}

// server is the server of a URL, which has the host and the port from start to end. The host of a
// Unix socket is "".
type server struct {
	scheme, host, port string
	start, end         int
}

// key identifies the server among the hosts that nginx resolves at startup.
func (s server) key() string {
	return net.JoinHostPort(strings.ToLower(s.host), cmp.Or(s.port, defaultPorts[s.scheme]))
}

// serverIn returns the server of a URL, which can have no scheme. Variables are part of it, unless
// the host ends before them.
func serverIn(url string) server {
	s := server{end: len(url)}
	if at := strings.Index(url, "://"); at >= 0 {
		s.scheme, s.start = url[:at], at+len("://")
	}
	if at := strings.IndexAny(url[s.start:], "/?"); at >= 0 {
		s.end = s.start + at
	}

	for _, at := range ofVariable.FindAllStringIndex(url[s.start:s.end], maxExpansions) {
		before, name := url[s.start:s.start+at[0]], url[s.start+at[0]:s.start+at[1]]
		if slices.Contains(uriVariables, nameOf(name)) || withPort.MatchString(before) {
			s.end = s.start + at[0]
			break
		}
	}

	authority := url[s.start:s.end]
	if strings.HasPrefix(authority, "unix:") {
		return s
	}

	if host, port, err := net.SplitHostPort(authority); err == nil {
		s.host, s.port = host, port
	} else {
		s.host = strings.Trim(authority, "[]")
	}

	return s
}
