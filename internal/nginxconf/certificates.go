package nginxconf

import (
	"path"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/defaults"
)

// readAtStart are the directives whose files must exist when nginx starts.
var readAtStart = []string{
	"ssl_certificate", "ssl_certificate_key", "ssl_client_certificate", "ssl_trusted_certificate", "ssl_dhparam", "ssl_crl",
	"ssl_password_file", "ssl_session_ticket_key", "ssl_stapling_file", "proxy_ssl_certificate", "proxy_ssl_certificate_key",
	"proxy_ssl_trusted_certificate", "proxy_ssl_crl", "grpc_ssl_certificate", "grpc_ssl_certificate_key",
	"grpc_ssl_trusted_certificate", "uwsgi_ssl_certificate", "uwsgi_ssl_certificate_key", "uwsgi_ssl_trusted_certificate",
}

// checkCertificates finds references to certificates that the Pod does not mount.
func (c *checker) checkCertificates() {
	reported := map[string]bool{}
	for _, d := range c.withNames(readAtStart...) {
		c.checkMounted(d, reported)
	}
}

// checkMounted checks a reference to a certificate. reported are the Secrets that spec.tls lacks,
// each of which is reported once.
func (c *checker) checkMounted(d *directive, reported map[string]bool) {
	file := d.first()
	if strings.Contains(file, "$") || inline.MatchString(file) {
		return
	}

	secret, key := mountedFile(file)
	isMounted := secret != "" && c.mountAt(file) == nil
	hasSecret := func(tls v1alpha2.TLS) bool { return tls.SecretName == secret }

	switch {
	case !path.IsAbs(file):
		c.refuse(d, "%s %s: relative path. Use %s/SECRETNAME/%s, where SECRETNAME is in spec.tls",
			d.name, file, TLSDirectory, usualKey(d))
	case reported[secret]:
	case isMounted && !slices.ContainsFunc(defaults.TLS(c.spec), hasSecret) && c.mountsKnown:
		reported[secret] = true
		c.refuse(d, "%s %s: Secret %s is not in spec.tls. Add `- secretName: %s`", d.name, file, secret, secret)
	case isMounted && key != corev1.TLSCertKey && key != corev1.TLSPrivateKeyKey:
		c.warn(d, "Secret %s must have the key %s, or nginx does not start", secret, key)
	}
}

// mountedFile returns the Secret and the key of a file below TLSDirectory, or "" for another file,
// and for a variable.
func mountedFile(file string) (secret, key string) {
	inside, isMounted := strings.CutPrefix(path.Clean(file), TLSDirectory+"/")
	secret, key, _ = strings.Cut(inside, "/")
	if !isMounted || strings.Contains(secret, "$") {
		return "", ""
	}
	return secret, key
}

// inline matches values that are not files.
var inline = regexp.MustCompile(`^(data|engine|store):`)

// usualKey returns the usual key of the Secret that a directive reads.
func usualKey(d *directive) string {
	switch {
	case strings.HasSuffix(d.name, "ssl_certificate_key"):
		return corev1.TLSPrivateKeyKey
	case strings.HasSuffix(d.name, "ssl_certificate"):
		return corev1.TLSCertKey
	}
	return "ca.crt"
}
