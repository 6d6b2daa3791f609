package certificates

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"maps"
	"math/big"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

var hosts = []string{"webhooks.system.svc", "webhooks.system.svc.cluster.local", "127.0.0.1"}

func newData(t *testing.T) map[string][]byte {
	t.Helper()
	data, err := New(hosts, Lifetime)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestNew verifies that only the certificate's own CA verifies it, for every host, and that it is
// not a CA.
func TestNew(t *testing.T) {
	data, other := newData(t), newData(t)
	certificate, err := Load(data)
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range hosts {
		if err := Verify(certificate, data[CAKey], []string{host}, time.Now()); err != nil {
			t.Error(err)
		}
		if Verify(certificate, other[CAKey], []string{host}, time.Now()) == nil {
			t.Errorf("%s: another CA vouches for it", host)
		}
	}
	if err := Outdated(certificate.Leaf); err != nil {
		t.Error(err)
	}
	if certificate.Leaf.IsCA {
		t.Error("it can sign others")
	}
	if left := time.Until(certificate.Leaf.NotAfter); left < Lifetime-2*time.Hour || left > Lifetime {
		t.Errorf("it is valid for %s", left)
	}
	if len(data) != 3 || strings.Count(string(data[corev1.TLSPrivateKeyKey]), "PRIVATE KEY-----") != 2 {
		t.Errorf("a Secret would hold more than the certificate, its key and the CA's certificate: %d keys", len(data))
	}
}

func TestRenew(t *testing.T) {
	now := time.Now()
	data := newData(t)
	with := func(key string, value []byte) map[string][]byte {
		changed := maps.Clone(data)
		changed[key] = value
		return changed
	}
	for name, test := range map[string]struct {
		data  map[string][]byte
		hosts []string
		now   time.Time
		want  string // "" if Renew returns no reason
	}{
		"new":                    {data, hosts, now, ""},
		"fewer hosts":            {data, hosts[:1], now, ""},
		"well before two thirds": {data, hosts, now.Add(Lifetime*2/3 - 2*time.Hour), ""},
		"after two thirds":       {data, hosts, now.Add(Lifetime * 2 / 3), "it expires at"},
		"over":                   {data, hosts, now.Add(Lifetime), "it expires at"},
		"another host":           {data, append([]string{"new.system.svc"}, hosts...), now, "new.system.svc"},
		"another address":        {data, []string{"127.0.0.2"}, now, "127.0.0.2"},
		"nothing":                {nil, hosts, now, "failed to read"},
		"no key":                 {with(corev1.TLSPrivateKeyKey, nil), hosts, now, "failed to read"},
		"another key": {
			with(corev1.TLSPrivateKeyKey, newData(t)[corev1.TLSPrivateKeyKey]), hosts, now, "failed to read",
		},
		"no CA":            {with(CAKey, nil), hosts, now, "no CA"},
		"CA is no PEM":     {with(CAKey, []byte("x")), hosts, now, "no CA"},
		"another one's CA": {with(CAKey, newData(t)[CAKey]), hosts, now, "unknown authority"},
	} {
		t.Run(name, func(t *testing.T) {
			err := Renew(test.data, test.hosts, test.now)
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("want %q, got %v", test.want, err)
			}
		})
	}
}

// TestOutdated verifies that a certificate of another kind of key is outdated. Releases before
// 0.7.1 created RSA keys.
func TestOutdated(t *testing.T) {
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	larger, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for want, key := range map[string]crypto.Signer{"its key is RSA": rsaKey, "its key is ECDSA, not ECDSA on P-256": larger} {
		template := &x509.Certificate{SerialNumber: big.NewInt(1)}
		der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
		if err != nil {
			t.Fatal(err)
		}
		certificate, err := x509.ParseCertificate(der)
		if err != nil {
			t.Fatal(err)
		}
		if err := Outdated(certificate); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}
