// Package certificates creates the serving certificate of the operator's webhooks if neither OLM
// nor cert-manager does, for a Secret of type kubernetes.io/tls.
package certificates

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
)

const (
	// Lifetime is how long a certificate and its CA are valid.
	Lifetime = 365 * 24 * time.Hour
	// CAKey is the key of the CA in a Secret, as cert-manager and Kubernetes name it.
	CAKey = "ca.crt"
)

// Load returns the certificate in a Secret's data.
func Load(data map[string][]byte) (*tls.Certificate, error) {
	certificate, err := tls.X509KeyPair(data[corev1.TLSCertKey], data[corev1.TLSPrivateKeyKey])
	if err != nil {
		return nil, fmt.Errorf("failed to read the certificate: %w", err)
	}
	return &certificate, nil
}

// Renew returns the reason to replace a certificate, or nil: it cannot be read, two thirds of its
// lifetime are over, it does not cover one of the hosts, or its CA differs.
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

// Outdated returns the reason to replace a working certificate of an earlier release, or nil. Any
// Pod can request signatures, and one with RSA takes many times longer than one on P-256.
func Outdated(certificate *x509.Certificate) error {
	if key, ok := certificate.PublicKey.(*ecdsa.PublicKey); ok && key.Curve == elliptic.P256() {
		return nil
	}
	return fmt.Errorf("its key is %s, not ECDSA on P-256", certificate.PublicKeyAlgorithm)
}

// Verify returns why a client that trusts a CA (PEM) does not accept a certificate for the hosts.
func Verify(certificate *tls.Certificate, ca []byte, hosts []string, now time.Time) error {
	authorities, between := x509.NewCertPool(), x509.NewCertPool()
	if !authorities.AppendCertsFromPEM(ca) {
		return errors.New("it has no CA")
	}

	for _, der := range certificate.Certificate[1:] {
		if intermediate, err := x509.ParseCertificate(der); err == nil {
			between.AddCert(intermediate)
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
