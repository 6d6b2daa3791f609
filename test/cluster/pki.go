package main

// This file makes the certificates and the kubeconfig files of the cluster.

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"time"
)

// certificateLifetime is long enough for a cluster that somebody forgot about.
const certificateLifetime = 5 * 365 * 24 * time.Hour

// identity is what one certificate says.
type identity struct {
	file         string
	commonName   string
	organization string
	// names are the DNS names and addresses of a server.
	names []string
	// kubeconfig makes a kubeconfig file of that name as well.
	kubeconfig bool
}

var identities = []identity{
	{file: "apiserver", commonName: "kube-apiserver", names: []string{
		"127.0.0.1", nodeIP, kubernetesIP, "localhost", nodeName, "kubernetes", "kubernetes.default", "kubernetes.default.svc",
		"kubernetes.default.svc." + clusterDomain,
	}},
	{file: "kubelet", commonName: "system:node:" + nodeName, organization: "system:nodes", names: []string{nodeIP, nodeName}, kubeconfig: true},
	{file: "registry", commonName: "registry", names: append(gatewayHosts(), nodeIP)},
	{file: "local", commonName: "localhost", names: []string{"127.0.0.1", "localhost"}},
	{file: "admin", commonName: "admin", organization: "system:masters", kubeconfig: true},
	{file: "controller-manager", commonName: "system:kube-controller-manager", kubeconfig: true},
	{file: "scheduler", commonName: "system:kube-scheduler", kubeconfig: true},
	{file: "proxy", commonName: "system:kube-proxy", kubeconfig: true},
	{file: "coredns", commonName: "coredns", organization: "system:masters", kubeconfig: true},
}

// frontProxy signs in the API server at aggregated APIs. It has a CA of its own, else each client certificate would do.
var frontProxy = identity{file: "front-proxy", commonName: "front-proxy"}

// authority is a CA.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// createPKI makes everything once: a restarted cluster keeps its certificates.
func (l layout) createPKI() error {
	done := l.state("pki", "done")
	if _, err := os.Stat(done); err == nil {
		return nil
	} else if !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("failed to look for the certificates: %w", err)
	}
	ca, err := l.createAuthority("ca")
	if err != nil {
		return err
	}
	for _, id := range identities {
		if err := l.createCertificate(ca, id); err != nil {
			return err
		}
	}
	front, err := l.createAuthority("front-proxy-ca")
	if err != nil {
		return err
	}
	if err := l.createCertificate(front, frontProxy); err != nil {
		return err
	}
	// The key that signs the tokens of service accounts.
	if _, err := l.createKey("service-accounts"); err != nil {
		return err
	}
	// Clients in the cluster's network trust its CA besides those of the system.
	bundle, err := os.ReadFile(l.state("pki", "ca.crt"))
	if err != nil {
		return fmt.Errorf("failed to read the CA: %w", err)
	}
	if err := writeFile(l.state("pki", "bundle.crt"), append(systemBundle(), bundle...), 0o644); err != nil {
		return err
	}
	return writeFile(done, nil, 0o644)
}

// systemBundle returns the CAs of the system, in the order in which Go looks for them.
func systemBundle() []byte {
	for _, path := range []string{
		os.Getenv("SSL_CERT_FILE"),
		"/etc/ssl/certs/ca-certificates.crt",
		"/etc/pki/tls/certs/ca-bundle.crt",
		"/etc/ssl/ca-bundle.pem",
	} {
		if data, err := os.ReadFile(path); path != "" && err == nil { // #nosec G304 G703 -- a bundle of certificates
			return append(data, '\n')
		}
	}
	return nil
}

func (l layout) createKey(name string) (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("failed to make the key of %s: %w", name, err)
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("failed to encode the key of %s: %w", name, err)
	}
	return key, writeFile(l.state("pki", name+".key"), encodePEM("EC PRIVATE KEY", der), 0o600)
}

func (l layout) createAuthority(name string) (authority, error) {
	key, err := l.createKey(name)
	if err != nil {
		return authority{}, err
	}
	template, err := certificateTemplate(pkix.Name{CommonName: "nginx-operator test cluster " + name})
	if err != nil {
		return authority{}, err
	}
	template.IsCA = true
	template.KeyUsage |= x509.KeyUsageCertSign
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return authority{}, fmt.Errorf("failed to make the CA %s: %w", name, err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return authority{}, fmt.Errorf("failed to parse the CA %s: %w", name, err)
	}
	return authority{cert: cert, key: key}, writeFile(l.state("pki", name+".crt"), encodePEM("CERTIFICATE", der), 0o644)
}

func (l layout) createCertificate(ca authority, id identity) error {
	key, err := l.createKey(id.file)
	if err != nil {
		return err
	}
	subject := pkix.Name{CommonName: id.commonName}
	if id.organization != "" {
		subject.Organization = []string{id.organization}
	}
	template, err := certificateTemplate(subject)
	if err != nil {
		return err
	}
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}
	for _, name := range id.names {
		if ip := net.ParseIP(name); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, name)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, ca.cert, key.Public(), ca.key)
	if err != nil {
		return fmt.Errorf("failed to make the certificate of %s: %w", id.file, err)
	}
	if err := writeFile(l.state("pki", id.file+".crt"), encodePEM("CERTIFICATE", der), 0o644); err != nil {
		return err
	}
	if !id.kubeconfig {
		return nil
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return fmt.Errorf("failed to encode the key of %s: %w", id.file, err)
	}
	encode := func(kind string, der []byte) string {
		return base64.StdEncoding.EncodeToString(encodePEM(kind, der))
	}
	data, err := render("kubeconfig", map[string]string{
		"Server":      apiServerAddress,
		"CA":          encode("CERTIFICATE", ca.cert.Raw),
		"User":        id.file,
		"Certificate": encode("CERTIFICATE", der),
		"Key":         encode("EC PRIVATE KEY", keyDER),
	})
	if err != nil {
		return err
	}
	return writeFile(l.state(id.file+".kubeconfig"), data, 0o600)
}

func certificateTemplate(subject pkix.Name) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, fmt.Errorf("failed to make a serial number: %w", err)
	}
	now := time.Now()
	return &x509.Certificate{
		SerialNumber:          serial,
		Subject:               subject,
		NotBefore:             now.Add(-time.Hour),
		NotAfter:              now.Add(certificateLifetime),
		KeyUsage:              x509.KeyUsageDigitalSignature,
		BasicConstraintsValid: true,
	}, nil
}

func encodePEM(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}
