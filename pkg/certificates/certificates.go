// Package certificates creates the serving certificate of the operator's webhooks if neither OLM
// nor cert-manager does, for a Secret of type kubernetes.io/tls.
package certificates

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"net"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
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

const clockSkew = time.Hour

// New returns the data of a Secret: a certificate for the hosts (at least one DNS name or IP
// address), its key on P-256, and the CA that signed it. The CA's key is discarded, so each
// certificate has a separate CA.
func New(hosts []string, lifetime time.Duration) (map[string][]byte, error) {
	now := time.Now()
	template := func(name string) *x509.Certificate {
		return &x509.Certificate{
			Subject:               pkix.Name{CommonName: fmt.Sprintf("%s@%d", name, now.Unix())},
			NotBefore:             now.Add(-clockSkew),
			NotAfter:              now.Add(lifetime - clockSkew),
			KeyUsage:              x509.KeyUsageDigitalSignature,
			BasicConstraintsValid: true,
		}
	}

	authority := template(hosts[0] + "-ca")
	authority.IsCA, authority.KeyUsage = true, authority.KeyUsage|x509.KeyUsageCertSign
	ca, caKey, err := sign(authority, nil, nil)
	if err != nil {
		return nil, err
	}

	leaf := template(hosts[0])
	leaf.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			leaf.IPAddresses = append(leaf.IPAddresses, ip)
		} else {
			leaf.DNSNames = append(leaf.DNSNames, host)
		}
	}

	certificate, key, err := sign(leaf, ca, caKey)
	if err != nil {
		return nil, err
	}

	chain, err := cert.EncodeCertificates(certificate, ca)
	trusted, caErr := cert.EncodeCertificates(ca)
	private, keyErr := keyutil.MarshalPrivateKeyToPEM(key)
	if err := errors.Join(err, caErr, keyErr); err != nil {
		return nil, fmt.Errorf("failed to encode a certificate: %w", err)
	}

	return map[string][]byte{corev1.TLSCertKey: chain, corev1.TLSPrivateKeyKey: private, CAKey: trusted}, nil
}

// sign creates a key and its certificate. Without a parent, the certificate is self-signed.
func sign(template, parent *x509.Certificate, parentKey *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("failed to create a key: %w", err)
	}
	if parent == nil {
		parent, parentKey = template, key
	}

	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), parentKey)
	if err != nil {
		return nil, nil, fmt.Errorf("failed to create a certificate: %w", err)
	}

	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, nil, fmt.Errorf("failed to read a new certificate: %w", err)
	}

	return certificate, key, nil
}
