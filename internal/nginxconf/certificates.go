package nginxconf

import (
	"path"
	"regexp"
	"slices"
	"strings"

	crossplane "github.com/nginxinc/nginx-go-crossplane"
)

// readAtStart are the directives whose files have to be there when nginx starts.
var readAtStart = []string{
	"ssl_certificate", "ssl_certificate_key", "ssl_client_certificate", "ssl_trusted_certificate", "ssl_dhparam", "ssl_crl",
	"ssl_password_file", "ssl_session_ticket_key", "ssl_stapling_file", "proxy_ssl_certificate", "proxy_ssl_certificate_key",
	"proxy_ssl_trusted_certificate", "proxy_ssl_crl", "grpc_ssl_certificate", "grpc_ssl_certificate_key",
	"grpc_ssl_trusted_certificate", "uwsgi_ssl_certificate", "uwsgi_ssl_certificate_key", "uwsgi_ssl_trusted_certificate",
}

// checkCertificates finds certificates that nothing mounts, and servers for TLS that have none.
func (c *checker) checkCertificates() {
	for _, name := range readAtStart {
		for _, d := range c.named[name] {
			c.checkMounted(d)
		}
	}
	for _, server := range c.topServers() {
		certificates := c.inServer(server, "ssl_certificate")
		keys := c.inServer(server, "ssl_certificate_key")
		if len(certificates) > len(keys) && !c.unseen {
			c.refuse(certificates[len(certificates)-1], "there is no ssl_certificate_key for it; add one")
		}
	}
	for _, d := range c.named["ssl_verify_client"] {
		authorities := append(c.inServer(d.parent, "ssl_client_certificate"), c.inServer(d.parent, "ssl_trusted_certificate")...)
		certified := len(c.inServer(d.parent, "ssl_certificate")) > 0
		if value := d.arg(0); (value == "on" || value == "optional") && certified && len(authorities) == 0 && !c.unseen {
			c.refuse(d, "there is nothing to verify with; add `ssl_client_certificate %s/NAME/ca.crt;` with a NAME of spec.tls", TLSDirectory)
		}
	}
	for _, l := range c.defaultsForTLS() {
		server := l.parent
		if len(c.inServer(server, "ssl_certificate")) == 0 && len(c.inServer(server, "ssl_reject_handshake")) == 0 && !c.unseen {
			c.refuse(l.directive, "the server has no certificate; add `ssl_certificate %s/NAME/tls.crt;` and `ssl_certificate_key %s/NAME/tls.key;` with a NAME of spec.tls", TLSDirectory, TLSDirectory)
		}
	}
}

// defaultsForTLS returns for each port the listen with ssl whose server answers clients that no other does. The others
// may do with its certificate.
func (c *checker) defaultsForTLS() []listen {
	var ports []int32
	first := map[int32]listen{}
	for _, server := range c.topServers() {
		for _, l := range c.listens(server) {
			if !l.has("ssl") {
				continue
			}
			if _, found := first[l.from]; !found {
				ports = append(ports, l.from)
				first[l.from] = l
			} else if l.has("default_server") && !first[l.from].has("default_server") {
				first[l.from] = l
			}
		}
	}
	var out []listen
	for _, port := range ports {
		out = append(out, first[port])
	}
	return out
}

// inServer returns what a server has of a directive, from around it where it has none itself.
func (c *checker) inServer(server *directive, name string) []*directive {
	if own := c.children(server, name); len(own) > 0 {
		return own
	}
	return c.children(nil, name)
}

func (c *checker) checkMounted(d *directive) {
	file := d.arg(0)
	if strings.Contains(file, "$") || inline.MatchString(file) {
		return
	}
	rest, mounted := strings.CutPrefix(path.Clean(file), TLSDirectory+"/")
	secret, key, _ := strings.Cut(rest, "/")
	switch {
	case !path.IsAbs(file):
		c.refuse(d, "%s is looked for in %s, where it is not; write %s/NAME/%s with a NAME of spec.tls", file, Directory, TLSDirectory, usualKey(d))
	case mounted && !slices.Contains(c.tlsNames(), secret):
		c.refuse(d, "spec.tls has no Secret %s; add `- secretName: %s` to spec.tls", secret, secret)
	case mounted:
		c.checkKey(d, secret, key)
	case !isBelow(file, "/etc/ssl") && !isBelow(file, "/etc/pki"):
		c.warn(d, "nginx does not start where the image has no %s; put the certificate into a Secret and name it in spec.tls", file)
	}
}

// inline is what is no file.
var inline = regexp.MustCompile(`^(data|engine|store):`)

// checkKey looks at the key of a Secret that a directive reads.
func (c *checker) checkKey(d *directive, secret, key string) {
	pair := key == "tls.crt" || key == "tls.key"
	switch usual := usualKey(d); {
	case key == "":
		c.refuse(d, "%s is a folder; write %s/%s/%s", d.arg(0), TLSDirectory, secret, usual)
	case !pair:
		c.warn(d, "nginx does not start where the Secret %s has no key %s; be sure that it has", secret, key)
	case key != usual && usual != "ca.crt":
		c.refuse(d, "%s is the other file of the pair; write %s/%s/%s", d.arg(0), TLSDirectory, secret, usual)
	}
}

// usualKey is the key of a Secret that a directive reads most often.
func usualKey(d *directive) string {
	switch {
	case strings.HasSuffix(d.Directive.Directive, "ssl_certificate_key"):
		return "tls.key"
	case strings.HasSuffix(d.Directive.Directive, "ssl_certificate"):
		return "tls.crt"
	}
	return "ca.crt"
}

func isInclude(d *crossplane.Directive) bool { return d.Directive == "include" }
