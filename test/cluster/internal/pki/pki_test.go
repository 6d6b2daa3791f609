package pki

import (
	"crypto/x509"
	"encoding/pem"
	"os"
	"testing"

	"github.com/example/nginx-operator/test/cluster/internal/layout"
)

func TestCreate(t *testing.T) {
	l := layout.New(t.TempDir())
	if err := Create(l); err != nil {
		t.Fatal(err)
	}
	ca := x509.NewCertPool()
	ca.AddCert(readCertificate(t, l, "ca"))
	for name, host := range map[string]string{
		"apiserver": layout.KubernetesIP,
		"kubelet":   layout.NodeIP,
		"registry":  "quay.io",
		"local":     "127.0.0.1",
		"github":    "github.com",
	} {
		_, err := readCertificate(t, l, name).Verify(x509.VerifyOptions{Roots: ca, DNSName: host})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	// The front proxy has a different CA, because a client certificate of the cluster must not pass
	// for the API server.
	if _, err := readCertificate(t, l, "front-proxy").Verify(x509.VerifyOptions{Roots: ca}); err == nil {
		t.Error("the front proxy's certificate comes from the cluster's CA")
	}
	if got := readCertificate(t, l, "kubelet").Subject.String(); got != "CN=system:node:node0,O=system:nodes" {
		t.Errorf("the kubelet is %s", got)
	}
	info, err := os.Stat(l.Kubeconfig())
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the kubeconfig file is for everybody: %v, %v", info.Mode(), err)
	}
	// A second run changes nothing.
	before := readCertificate(t, l, "admin")
	if err := Create(l); err != nil {
		t.Fatal(err)
	}
	if !before.Equal(readCertificate(t, l, "admin")) {
		t.Error("the certificate was made again")
	}
}

func readCertificate(t *testing.T, l layout.Layout, name string) *x509.Certificate {
	t.Helper()
	data, err := os.ReadFile(l.PKI(name + ".crt"))
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(data)
	if block == nil {
		t.Fatalf("%s is not PEM", name)
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}
