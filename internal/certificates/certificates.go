// Package certificates makes the serving certificate of the operator's webhooks where nobody else does: not OLM, and not
// cert-manager. The certificate is the content of a Secret of type kubernetes.io/tls that all replicas share.
package certificates

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/cert"
)

const (
	// Lifetime is how long a certificate and its CA are valid.
	Lifetime = 365 * 24 * time.Hour
	// CAKey is the key of the CA in a Secret, as cert-manager and Kubernetes name it.
	CAKey = "ca.crt"
)

// New returns the data of a Secret: a certificate for the hosts (at least one DNS name or IP address), its key, and the
// CA that signed it. The CA's key is thrown away: each certificate has a CA of its own, and who
// trusts two of them at a time sees no gap between two certificates.
func New(hosts []string, lifetime time.Duration) (map[string][]byte, error) {
	options := cert.SelfSignedCertKeyOptions{Host: hosts[0], MaxAge: lifetime}
	for _, host := range hosts[1:] {
		if ip := net.ParseIP(host); ip != nil {
			options.AlternateIPs = append(options.AlternateIPs, ip)
		} else {
			options.AlternateDNS = append(options.AlternateDNS, host)
		}
	}
	chain, key, err := cert.GenerateSelfSignedCertKeyWithOptions(options)
	if err != nil {
		return nil, fmt.Errorf("failed to make a certificate: %w", err)
	}
	certificates, err := cert.ParseCertsPEM(chain)
	if err != nil || len(certificates) != 2 {
		return nil, fmt.Errorf("failed to read the certificate that was made: %d parts: %w", len(certificates), err)
	}
	ca, err := cert.EncodeCertificates(certificates[1])
	if err != nil {
		return nil, fmt.Errorf("failed to write the CA of a certificate: %w", err)
	}
	return map[string][]byte{corev1.TLSCertKey: chain, corev1.TLSPrivateKeyKey: key, CAKey: ca}, nil
}

// Load returns the certificate of a Secret's data. Errors say what is wrong with it.
func Load(data map[string][]byte) (*tls.Certificate, error) {
	certificate, err := tls.X509KeyPair(data[corev1.TLSCertKey], data[corev1.TLSPrivateKeyKey])
	if err != nil {
		return nil, fmt.Errorf("failed to read the certificate: %w", err)
	}
	return &certificate, nil
}

// Renew tells why a certificate has to be replaced, nil where it does not: it cannot be read, two thirds of its time are
// over, it is not for one of the hosts, or its CA is another one.
func Renew(data map[string][]byte, hosts []string, now time.Time) error {
	certificate, err := Load(data)
	if err != nil {
		return err
	}
	if !now.Before(RenewAt(certificate.Leaf)) {
		return fmt.Errorf("it ends at %s", certificate.Leaf.NotAfter.Format(time.RFC3339))
	}
	return Verify(certificate, data[CAKey], hosts, now)
}

// Verify returns why who trusts a CA (PEM) does not accept a certificate as that of each host.
func Verify(certificate *tls.Certificate, ca []byte, hosts []string, now time.Time) error {
	authorities, between := x509.NewCertPool(), x509.NewCertPool()
	if !authorities.AppendCertsFromPEM(ca) {
		return errors.New("it has no CA")
	}
	for _, der := range certificate.Certificate[1:] {
		if one, err := x509.ParseCertificate(der); err == nil {
			between.AddCert(one)
		}
	}
	for _, host := range hosts {
		options := x509.VerifyOptions{Roots: authorities, Intermediates: between, DNSName: host, CurrentTime: now}
		if _, err := certificate.Leaf.Verify(options); err != nil {
			return err
		}
	}
	return nil
}

// RenewAt returns when Renew asks for another certificate in the place of this one.
func RenewAt(certificate *x509.Certificate) time.Time {
	return certificate.NotAfter.Add(-certificate.NotAfter.Sub(certificate.NotBefore) / 3)
}
