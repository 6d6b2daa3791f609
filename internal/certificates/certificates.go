// Package certificates creates the serving certificate of the operator's webhooks if neither OLM
// nor cert-manager does. The certificate is in a Secret of type kubernetes.io/tls that all replicas
// share.
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

// New returns the data of a Secret: a certificate for the hosts (at least one DNS name or IP
// address), its key, and the CA that signed it. The CA's key is discarded, so each certificate has
// a separate CA. A client that trusts both CAs accepts both certificates during a renewal.
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
		return nil, fmt.Errorf("failed to create a certificate: %w", err)
	}
	certificates, err := cert.ParseCertsPEM(chain)
	if err != nil || len(certificates) != 2 {
		return nil, fmt.Errorf("failed to read the new certificate: %d parts: %w", len(certificates), err)
	}
	ca, err := cert.EncodeCertificates(certificates[1])
	if err != nil {
		return nil, fmt.Errorf("failed to encode the CA of a certificate: %w", err)
	}
	return map[string][]byte{corev1.TLSCertKey: chain, corev1.TLSPrivateKeyKey: key, CAKey: ca}, nil
}

// Load returns the certificate in a Secret's data.
func Load(data map[string][]byte) (*tls.Certificate, error) {
	certificate, err := tls.X509KeyPair(data[corev1.TLSCertKey], data[corev1.TLSPrivateKeyKey])
	if err != nil {
		return nil, fmt.Errorf("failed to read the certificate: %w", err)
	}
	return &certificate, nil
}

// Renew returns the reason to replace a certificate, or nil if there is none. The reasons are: it
// cannot be read, two thirds of its lifetime are over, it does not cover one of the hosts, or its
// CA differs.
func Renew(data map[string][]byte, hosts []string, now time.Time) error {
	certificate, err := Load(data)
	if err != nil {
		return err
	}
	if !now.Before(RenewAt(certificate.Leaf)) {
		return fmt.Errorf("it expires at %s", certificate.Leaf.NotAfter.Format(time.RFC3339))
	}
	return Verify(certificate, data[CAKey], hosts, now)
}

// Verify returns an error if a client that trusts a CA (PEM) does not accept a certificate for each
// of the hosts.
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

// RenewAt returns the time from which Renew replaces a certificate.
func RenewAt(certificate *x509.Certificate) time.Time {
	return certificate.NotAfter.Add(-certificate.NotAfter.Sub(certificate.NotBefore) / 3)
}
