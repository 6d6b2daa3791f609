package world

import (
	"crypto/ed25519"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/binary"
	"encoding/pem"
	"math/big"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/example/nginx-operator/test/simulation/check"
)

// certificateName is the name of the Secret with the certificate that instances reference.
const certificateName = "cert"

// zero is a source of randomness that returns only zeros, so that the same number results in the
// same certificate.
type zero struct{}

// Read implements io.Reader.
func (zero) Read(into []byte) (int, error) {
	clear(into)
	return len(into), nil
}

// RenewCertificate writes a new certificate to the Secret.
func (w *World) RenewCertificate() { w.RenewCertificateOf(certificateName, 90*24*time.Hour) }

// RenewCertificateOf writes a new certificate to a Secret. The certificate is valid for some time.
func (w *World) RenewCertificateOf(name string, valid time.Duration) {
	number := uint64(w.Store.Revision()) //nolint:gosec // it is positive
	seed := make([]byte, ed25519.SeedSize)
	binary.BigEndian.PutUint64(seed, number)
	key := ed25519.NewKeyFromSeed(seed)
	template := &x509.Certificate{
		SerialNumber: new(big.Int).SetUint64(number), Subject: pkix.Name{CommonName: "simulation"}, DNSNames: []string{"www.example.com"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(valid),
	}
	certificate, err := x509.CreateCertificate(zero{}, template, template, key.Public(), key)
	w.Must(err)
	encoded, err := x509.MarshalPKCS8PrivateKey(key)
	w.Must(err)
	parsed, err := x509.ParseCertificate(certificate)
	w.Must(err)
	w.Must(w.Write(&corev1.Secret{
		ObjectMeta: Meta(name), Type: corev1.SecretTypeTLS,
		Data: map[string][]byte{
			corev1.TLSCertKey:       pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate}),
			corev1.TLSPrivateKeyKey: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded}),
		},
	}))
	w.Certificates[name] = check.Certificate{NotAfter: parsed.NotAfter, Written: w.Store.Now()}
}
