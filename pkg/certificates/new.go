package certificates

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
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

// clockSkew is the time by which the clocks of two machines may differ.
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
