package nginxconf

import (
	"crypto/x509"
	"slices"
	"strings"
)

// maxServerNames is the maximum number of server names that are compared with the names of a
// certificate.
const maxServerNames = 256

// checkServerNames warns of certificates that cover no name of the servers that use them. nginx
// does not report this.
func (c *checker) checkServerNames() {
	for _, d := range c.named["ssl_certificate"] {
		secret, _ := mountedFile(d.first())
		known := c.names[secret]
		if len(known) == 0 {
			continue
		}

		delete(c.names, secret) // one warning is enough
		if names := c.namesServedWith(secret); len(names) > 0 && len(names) <= maxServerNames && !anyMatches(known, names) {
			c.warn(d, "clients refuse the certificate in Secret %s: it is for %s, and server_name has none of these names. "+
				"Add one to server_name, or reference another Secret", secret, strings.Join(known, ", "))
		}
	}
}

// namesServedWith returns the names of the servers that use a certificate. A server uses its own
// certificates, or else the certificates of the http context. The result is nil if one of the
// servers can have any name.
func (c *checker) namesServedWith(secret string) []string {
	uses := func(block *directive) bool {
		return slices.ContainsFunc(c.children(block, "ssl_certificate"), func(d *directive) bool {
			used, _ := mountedFile(d.first())
			return used == secret
		})
	}

	var served []string
	for _, server := range c.topServers() {
		if !uses(server) && (len(c.children(server, "ssl_certificate")) > 0 || !uses(nil)) {
			continue
		}

		before := len(served)
		for _, d := range c.children(server, "server_name") {
			for _, name := range d.args {
				if strings.HasPrefix(name, "~") || strings.Contains(name, "$") {
					return nil
				}
				if strings.Contains(name, ".") {
					served = append(served, name)
				}
			}
		}

		if len(served) == before {
			return nil
		}
	}

	return served
}

// anyMatches reports whether a certificate with the known names covers one of the names of
// server_name.
func anyMatches(known, names []string) bool {
	certificate := &x509.Certificate{DNSNames: known}
	return slices.ContainsFunc(names, func(name string) bool {
		if prefix, open := strings.CutSuffix(name, "*"); open {
			return slices.ContainsFunc(known, func(other string) bool { return strings.HasPrefix(other, prefix) })
		}

		all, isWildcard := strings.CutPrefix(name, "*.")
		domain, isDomain := strings.CutPrefix(name, ".")
		switch {
		case isWildcard:
			return isBelowDomain(known, all)
		case isDomain:
			return isBelowDomain(known, domain) || certificate.VerifyHostname(domain) == nil
		}

		return certificate.VerifyHostname(name) == nil
	})
}

// isBelowDomain reports whether one of the names is below a domain.
func isBelowDomain(names []string, domain string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return strings.HasSuffix(strings.ToLower(name), "."+strings.ToLower(domain)) })
}
