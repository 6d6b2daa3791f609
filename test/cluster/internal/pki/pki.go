// Package pki creates the certificates and the kubeconfig files of the cluster.
package pki

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	_ "embed"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"text/template"
	"time"

	"github.com/example/nginx-operator/test/cluster/internal/host"
	"github.com/example/nginx-operator/test/cluster/internal/layout"
	"github.com/example/nginx-operator/test/cluster/internal/registry"
)

//go:embed kubeconfig
var kubeconfig string

var kubeconfigTemplate = template.Must(template.New("kubeconfig").Option("missingkey=error").Parse(kubeconfig))

// certificateLifetime is long enough for a cluster that a user forgot.
const certificateLifetime = 5 * 365 * 24 * time.Hour

// identity describes one certificate.
type identity struct {
	file         string
	commonName   string
	organization string
	// names are the DNS names and IP addresses of a server.
	names []string
	// kubeconfig requests a kubeconfig file with the same name.
	kubeconfig bool
}

var identities = []identity{
	{file: "apiserver", commonName: "kube-apiserver", names: []string{
		"127.0.0.1", layout.NodeIP, layout.KubernetesIP, "localhost", layout.NodeName, "kubernetes", "kubernetes.default",
		"kubernetes.default.svc", "kubernetes.default.svc." + layout.ClusterDomain,
	}},
	{
		file: "kubelet", commonName: "system:node:" + layout.NodeName, organization: "system:nodes",
		names: []string{layout.NodeIP, layout.NodeName}, kubeconfig: true,
	},
	{file: "registry", commonName: "registry", names: append(registry.GatewayHosts(), layout.NodeIP)},
	{file: "local", commonName: "localhost", names: []string{"127.0.0.1", "localhost"}},
	// End-to-end tests serve the files of the release under the name that users download from.
	{file: "github", commonName: "github.com", names: []string{"github.com"}},
	{file: "admin", commonName: "admin", organization: "system:masters", kubeconfig: true},
	{file: "controller-manager", commonName: "system:kube-controller-manager", kubeconfig: true},
	{file: "scheduler", commonName: "system:kube-scheduler", kubeconfig: true},
	{file: "proxy", commonName: "system:kube-proxy", kubeconfig: true},
	{file: "coredns", commonName: "coredns", organization: "system:masters", kubeconfig: true},
}

// frontProxy identifies the API server to aggregated APIs. It has its own CA, so that they do not
// accept other client certificates of the cluster.
var frontProxy = identity{file: "front-proxy", commonName: "front-proxy"}

// ca is a CA certificate with its key.
type ca struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// Create creates all files once. A restarted cluster keeps its certificates.
func Create(l layout.Layout) error {
	done := l.PKI("done")
	if _, err := os.Stat(done); err == nil {
		return nil
	} else if !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("failed to look for the certificates: %w", err)
	}
	root, err := createCA(l, "ca")
	if err != nil {
		return err
	}
	for _, id := range identities {
		if err := createCertificate(l, root, id); err != nil {
			return err
		}
	}
	front, err := createCA(l, "front-proxy-ca")
	if err != nil {
		return err
	}
	if err := createCertificate(l, front, frontProxy); err != nil {
		return err
	}
	// This key signs the tokens of service accounts.
	if _, _, err := createKey(l, "service-accounts"); err != nil {
		return err
	}
	// Clients in the cluster's network trust its CA in addition to the system's CAs.
	bundle := append(systemBundle(), encodePEM("CERTIFICATE", root.cert.Raw)...)
	if err := host.WriteFile(l.PKI("bundle.crt"), bundle, 0o644); err != nil {
		return err
	}
	return host.WriteFile(done, nil, 0o644)
}

// systemBundle returns the system's CA certificates, from the first file that exists in Go's search
// order.
func systemBundle() []byte {
	for _, path := range []string{
		os.Getenv("SSL_CERT_FILE"),
		"/etc/ssl/certs/ca-certificates.crt",
		"/etc/pki/tls/certs/ca-bundle.crt",
		"/etc/ssl/ca-bundle.pem",
	} {
		if data, err := os.ReadFile(path); path != "" && err == nil {
			return append(data, '\n')
		}
	}
	return nil
}

// createKey creates and writes a key. It also returns the key in PEM encoding.
func createKey(l layout.Layout, name string) (key *ecdsa.PrivateKey, encoded []byte, err error) {
	if key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		return nil, nil, fmt.Errorf("failed to make the key of %s: %w", name, err)
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, nil, fmt.Errorf("failed to encode the key of %s: %w", name, err)
	}
	encoded = encodePEM("EC PRIVATE KEY", der)
	return key, encoded, host.WriteFile(l.PKI(name+".key"), encoded, 0o600)
}

func createCA(l layout.Layout, name string) (ca, error) {
	key, _, err := createKey(l, name)
	if err != nil {
		return ca{}, err
	}
	cert := &x509.Certificate{
		Subject:  pkix.Name{CommonName: "nginx-operator test cluster " + name},
		IsCA:     true,
		KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := sign(l, name, cert, key, ca{cert: cert, key: key})
	if err != nil {
		return ca{}, err
	}
	// Only the parsed certificate has the key identifier to which issued certificates refer.
	if cert, err = x509.ParseCertificate(der); err != nil {
		return ca{}, fmt.Errorf("failed to parse the CA %s: %w", name, err)
	}
	return ca{cert: cert, key: key}, nil
}

func createCertificate(l layout.Layout, issuer ca, id identity) error {
	key, keyPEM, err := createKey(l, id.file)
	if err != nil {
		return err
	}
	cert := &x509.Certificate{
		Subject:     pkix.Name{CommonName: id.commonName},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}
	if id.organization != "" {
		cert.Subject.Organization = []string{id.organization}
	}
	for _, name := range id.names {
		if ip := net.ParseIP(name); ip != nil {
			cert.IPAddresses = append(cert.IPAddresses, ip)
		} else {
			cert.DNSNames = append(cert.DNSNames, name)
		}
	}
	der, err := sign(l, id.file, cert, key, issuer)
	if err != nil || !id.kubeconfig {
		return err
	}
	var out bytes.Buffer
	err = kubeconfigTemplate.Execute(&out, map[string]string{
		"Server":      layout.APIServerAddress,
		"CA":          base64.StdEncoding.EncodeToString(encodePEM("CERTIFICATE", issuer.cert.Raw)),
		"User":        id.file,
		"Certificate": base64.StdEncoding.EncodeToString(encodePEM("CERTIFICATE", der)),
		"Key":         base64.StdEncoding.EncodeToString(keyPEM),
	})
	if err != nil {
		return fmt.Errorf("failed to render the kubeconfig file of %s: %w", id.file, err)
	}
	return host.WriteFile(l.State(id.file+".kubeconfig"), out.Bytes(), 0o600)
}

// sign completes a certificate, signs it with the issuer's key, and writes it.
func sign(l layout.Layout, name string, cert *x509.Certificate, key *ecdsa.PrivateKey, issuer ca) ([]byte, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, fmt.Errorf("failed to make a serial number: %w", err)
	}
	cert.SerialNumber = serial
	cert.NotBefore = time.Now().Add(-time.Hour)
	cert.NotAfter = time.Now().Add(certificateLifetime)
	cert.KeyUsage |= x509.KeyUsageDigitalSignature
	cert.BasicConstraintsValid = true
	der, err := x509.CreateCertificate(rand.Reader, cert, issuer.cert, key.Public(), issuer.key)
	if err != nil {
		return nil, fmt.Errorf("failed to make the certificate of %s: %w", name, err)
	}
	return der, host.WriteFile(l.PKI(name+".crt"), encodePEM("CERTIFICATE", der), 0o644)
}

func encodePEM(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}
