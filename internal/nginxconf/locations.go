package nginxconf

import (
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// locationOf returns the modifier of a location ("", "=", "^~", "~", "~*" or "@") and what follows it.
func locationOf(d *directive) (modifier, name string) {
	if len(d.Args) == 2 {
		return d.Args[0], d.Args[1]
	}
	name = d.arg(0)
	for _, modifier := range []string{"=", "^~", "~*", "~", "@"} {
		if rest, ok := strings.CutPrefix(name, modifier); ok {
			return modifier, rest
		}
	}
	return "", name
}

// checkLocations finds locations that nginx refuses: the same twice, and one that is outside of the one around it.
func (c *checker) checkLocations() {
	type key struct {
		block *directive
		exact bool
		name  string
	}
	first := map[key]*directive{}
	for _, d := range c.named["location"] {
		modifier, name := locationOf(d)
		if !slices.Contains([]string{"", "=", "^~", "~", "~*", "@"}, modifier) {
			c.refuse(d, "the modifier %q does not exist; use =, ^~, ~ or ~*, or leave it out", modifier)
			continue
		}
		if around := d.parent; around != nil && around.Directive.Directive == "location" {
			c.checkNested(d, modifier, name, around)
		}
		if modifier == "~" || modifier == "~*" {
			continue
		}
		k := key{d.parent, modifier == "=", name}
		if modifier == "@" {
			k.name = "@" + name
		}
		if earlier, found := first[k]; found {
			c.refuse(d, "line %d has the same location; remove one of them or put both together", earlier.Line)
			continue
		}
		first[k] = d
	}
}

func (c *checker) checkNested(d *directive, modifier, name string, around *directive) {
	outer, prefix := locationOf(around)
	switch {
	case outer == "=":
		c.refuse(d, "the location around it is exact (=) and can have none inside; put it beside it")
	case outer == "@":
		c.refuse(d, "the location around it has a name and can have none inside; put it beside it")
	case modifier == "@":
		c.refuse(d, "a location with a name stands in a server block only; put it there")
	case (outer == "~" || outer == "~*") && modifier != "~" && modifier != "~*":
		c.refuse(d, "the location around it is a regular expression, and inside can only be others (~); put it beside it")
	case modifier != "~" && modifier != "~*" && !strings.HasPrefix(name, prefix):
		c.refuse(d, "%s is outside of the location %s around it; put it beside it", name, prefix)
	}
}

// passes are the directives that name a server behind nginx.
var passes = []string{"proxy_pass", "grpc_pass", "fastcgi_pass", "uwsgi_pass", "scgi_pass", "memcached_pass"}

// checkUpstreams finds groups of servers that are empty or defined twice.
func (c *checker) checkUpstreams() {
	first := map[string]*directive{}
	for _, d := range c.named["upstream"] {
		if earlier, found := first[d.arg(0)]; found {
			c.refuse(d, "line %d defines %s already; choose another name", earlier.Line, d.arg(0))
		}
		first[d.arg(0)] = d
		if len(c.children(d, "server")) == 0 && !slices.ContainsFunc(d.Block, isInclude) {
			c.refuse(d, "there is no server in it; add one, for example `server app:8080;`")
		}
		for _, server := range c.children(d, "server") {
			c.checkPortNumber(server)
		}
	}
	for _, name := range passes {
		for _, d := range c.named[name] {
			if name == "proxy_pass" && !strings.Contains(d.arg(0), "$") &&
				!strings.HasPrefix(d.arg(0), "http://") && !strings.HasPrefix(d.arg(0), "https://") {
				c.refuse(d, "%s has no scheme; write http://%s", d.arg(0), d.arg(0))
				continue
			}
			host, port := target(d)
			c.checkPortNumber(d)
			_, isUpstream := first[host]
			if host != "" && port == "" && name != "proxy_pass" && !isUpstream && !c.unseen {
				c.refuse(d, "%s has no port; add one, as in %s:9000", host, host)
			}
			if isUpstream && port != "" {
				c.refuse(d, "%s is an upstream, whose servers have ports of their own; remove :%s", host, port)
			}
		}
	}
}

// checkPortNumber looks at the port of a server behind nginx.
func (c *checker) checkPortNumber(d *directive) {
	_, port := target(d)
	if number, err := strconv.Atoi(port); port != "" && (err != nil || number < 1 || number > 65535) {
		c.refuse(d, "%s is no port from 1 to 65535", port)
	}
}

// target returns the host and the port that a directive passes requests to, "" where they are only known later.
func target(d *directive) (host, port string) {
	address := d.arg(0)
	if _, rest, found := strings.Cut(address, "://"); found {
		address = rest
	}
	address, _, _ = strings.Cut(address, "/")
	if strings.Contains(address, "$") || strings.HasPrefix(address, "unix:") || address == "unix:" {
		return "", ""
	}
	parsed := url.URL{Host: address}
	return parsed.Hostname(), parsed.Port()
}

// checkHosts warns of names that have to be known when nginx starts.
func (c *checker) checkHosts() {
	upstreams := map[string]bool{}
	for _, d := range c.named["upstream"] {
		upstreams[d.arg(0)] = true
	}
	told := map[string]bool{}
	tell := func(d *directive, host string) {
		if _, err := netip.ParseAddr(host); err == nil || host == "" || host == "localhost" || upstreams[host] || told[host] {
			return
		}
		told[host] = true
		c.warn(d, "nginx looks %s up when it starts, and does not start where it is unknown; be sure that it exists first", host)
	}
	for _, d := range c.named["server"] {
		if d.Block == nil && !slices.Contains(d.Args, "resolve") {
			host, _ := target(d)
			tell(d, host)
		}
	}
	for _, d := range c.named["resolver"] {
		for _, arg := range d.Args {
			if !strings.Contains(arg, "=") {
				host := url.URL{Host: arg}
				tell(d, host.Hostname())
			}
		}
	}
	for _, name := range passes {
		for _, d := range c.named[name] {
			host, _ := target(d)
			tell(d, host)
			if strings.Contains(d.arg(0), "$") && !upstreams[hostBeforeVariable(d)] && !c.hasResolver(d) && !c.unseen {
				c.warn(d, "a name that stands in a variable is looked up for each request, which needs a resolver; add `resolver` with the address of the cluster's DNS, unless the variable holds an upstream")
			}
		}
	}
}

// hostBeforeVariable returns the host of an address that has a variable only behind it.
func hostBeforeVariable(d *directive) string {
	address := d.arg(0)
	if _, rest, found := strings.Cut(address, "://"); found {
		address = rest
	}
	return address[:strings.IndexAny(address+"/", "/$")]
}

// hasResolver tells whether a resolver is set in one of the blocks around a directive.
func (c *checker) hasResolver(d *directive) bool {
	for block := d.parent; ; block = block.parent {
		if len(c.children(block, "resolver")) > 0 {
			return true
		}
		if block == nil {
			return false
		}
	}
}
