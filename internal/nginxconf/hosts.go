package nginxconf

import (
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// passes are the directives that name a server behind nginx.
var passes = []string{"proxy_pass", "grpc_pass", "fastcgi_pass", "uwsgi_pass", "scgi_pass", "memcached_pass"}

// target returns the host that a directive passes requests to, "" where it is only known later.
func target(d *directive) string {
	address := d.first()
	if _, rest, found := strings.Cut(address, "://"); found {
		address = rest
	}
	address, _, _ = strings.Cut(address, "/")
	if strings.Contains(address, "$") || strings.HasPrefix(address, "unix:") || address == "unix:" {
		return ""
	}
	parsed := url.URL{Host: address}
	return parsed.Hostname()
}

// checkHosts warns of names that have to be known when nginx starts.
func (c *checker) checkHosts() {
	upstreams := map[string]bool{}
	for _, d := range c.named["upstream"] {
		upstreams[d.first()] = true
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
		if !d.isBlock && !slices.Contains(d.args, "resolve") {
			tell(d, target(d))
		}
	}
	for _, d := range c.named["resolver"] {
		for _, arg := range d.args {
			if !strings.Contains(arg, "=") {
				host := url.URL{Host: arg}
				tell(d, host.Hostname())
			}
		}
	}
	for _, name := range passes {
		for _, d := range c.named[name] {
			tell(d, target(d))
			if strings.Contains(d.first(), "$") && !upstreams[hostBeforeVariable(d)] && !c.hasResolver(d) && !c.unseen {
				c.warn(d, "a name that stands in a variable is looked up for each request, which needs a resolver; "+
					"add `resolver` with the address of the cluster's DNS, unless the variable holds an upstream")
			}
		}
	}
}

// hostBeforeVariable returns the host of an address that has a variable only behind it.
func hostBeforeVariable(d *directive) string {
	address := d.first()
	if _, rest, found := strings.Cut(address, "://"); found {
		address = rest
	}
	return address[:strings.IndexAny(address+"/", "/$")]
}

// hasResolver reports whether a resolver is set in one of the blocks around a directive.
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
