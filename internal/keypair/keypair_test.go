package keypair

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/example/nginx-operator/pkg/bounds/boundstest"
)

func block(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// pair returns a certificate and its key in PEM form.
func pair(t testing.TB, key crypto.Signer, names ...string) (certificate, private []byte) {
	t.Helper()
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: append(names, "example.com"), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return block("CERTIFICATE", der), block("PRIVATE KEY", pkcs8)
}

func ec(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func TestTakesKeysInUse(t *testing.T) {
	_, edwards, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	for name, key := range map[string]crypto.Signer{"EC": ec(t), "Ed25519": edwards, "RSA": rsaKey} {
		certificate, private := pair(t, key)
		other, _ := pair(t, ec(t))
		for name, chain := range map[string][]byte{name: certificate, name + " with a chain": append(certificate, other...)} {
			if _, err := Check(chain, private); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	certificate, _ := pair(t, rsaKey)
	if _, err := Check(certificate, block("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(rsaKey))); err != nil {
		t.Errorf("RSA in PKCS #1: %v", err)
	}
}

type prime struct{ Prime, Exp, Coeff *big.Int }

// rsaKey is an RSA private key in the form of PKCS #1.
type rsaKey struct {
	Version               int
	N                     *big.Int
	E                     int
	D, P, Q, Dp, Dq, Qinv *big.Int
	AdditionalPrimes      []prime `asn1:"optional,omitempty"`
}

// hostile returns an RSA key that no real program creates. Its factors are not prime but
// consistent, so that every check runs.
func hostile(t testing.TB, bits int, primes int) []byte {
	t.Helper()
	one, key := big.NewInt(1), rsaKey{E: 65537}
	odd := func() *big.Int {
		for {
			number, err := rand.Int(rand.Reader, new(big.Int).Lsh(one, uint(bits/2))) //nolint:gosec // it is small
			if err != nil {
				t.Fatal(err)
			}
			number.SetBit(number.SetBit(number.SetBit(number, 0, 1), bits/2-1, 1), bits/2-2, 1)
			if new(big.Int).GCD(nil, nil, new(big.Int).Sub(number, one), big.NewInt(65537)).Cmp(one) == 0 {
				return number
			}
		}
	}
	for key.Qinv == nil {
		key.P, key.Q = odd(), odd()
		key.Qinv = new(big.Int).ModInverse(key.Q, key.P)
	}
	p, q := new(big.Int).Sub(key.P, one), new(big.Int).Sub(key.Q, one)
	both := new(big.Int).Mul(p, q)
	both.Div(both, new(big.Int).GCD(nil, nil, p, q))
	key.N = new(big.Int).Mul(key.P, key.Q)
	key.D = new(big.Int).ModInverse(big.NewInt(int64(key.E)), both)
	key.Dp, key.Dq = new(big.Int).Mod(key.D, p), new(big.Int).Mod(key.D, q)
	for range primes {
		key.Version = 1
		key.AdditionalPrimes = append(key.AdditionalPrimes, prime{key.P, key.P, key.P})
	}
	der, err := asn1.Marshal(key)
	if err != nil {
		t.Fatal(err)
	}
	return der
}

func TestRefusesWhatIsDear(t *testing.T) {
	certificate, private := pair(t, ec(t))
	large, many := hostile(t, 100_000, 0), hostile(t, 64, 1000)
	wrapped, err := asn1.Marshal(struct {
		Version   int
		Algorithm struct{ ID asn1.ObjectIdentifier }
		Key       []byte
	}{0, struct{ ID asn1.ObjectIdentifier }{asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 1, 1}}, large})
	if err != nil {
		t.Fatal(err)
	}
	nested := []byte{}
	for length := byte(0); length < 80; length += 2 {
		nested = append([]byte{0x30, length}, nested...)
	}
	const word = "TOP-SECRET"
	for name, test := range map[string]struct {
		certificate, key []byte
		want             string
	}{
		"a large key":             {certificate, block("RSA PRIVATE KEY", large), "has a number of 100008 bits"},
		"one in PKCS #8":          {certificate, block("PRIVATE KEY", wrapped), "has a number of 100008 bits"},
		"many primes":             {certificate, block("RSA PRIVATE KEY", many), "more numbers than"},
		"a large certificate":     {block("CERTIFICATE", large), private, "the certificate has a number of"},
		"a long text":             {certificate, bytes.Repeat([]byte("x"), maxBytes+1), "bytes"},
		"many blocks":             {bytes.Repeat(certificate, maxBlocks+1), private, "PEM blocks"},
		"a deep certificate":      {block("CERTIFICATE", nested), private, "nested"},
		"many values":             {block("CERTIFICATE", bytes.Repeat([]byte{5, 0}, maxValues+1)), private, "too many values"},
		"no PEM":                  {[]byte(word), private, "no PEM block CERTIFICATE"},
		"a block of another type": {block(word, []byte{5, 0}), private, "no PEM block CERTIFICATE"},
		"a key of another type":   {certificate, block(word, []byte{5, 0}), "no PEM block PRIVATE KEY"},
		"a key of somebody else": {
			certificate, func() []byte { _, other := pair(t, ec(t)); return other }(), "private key does not match public key",
		},
		"a key that is cut off":     {certificate, private[:len(private)/2], "cannot be parsed"},
		"a key full of other bytes": {certificate, block("PRIVATE KEY", []byte(word)), "cannot be parsed"},
	} {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			_, err := Check(test.certificate, test.key)
			if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), word) {
				t.Errorf("want %q, got: %v", test.want, err)
			}
			if took := time.Since(began); took > 10*time.Second { // unbounded, it takes hours
				t.Errorf("took %s", took)
			}
		})
	}
}

// TestMostExpensiveKey verifies that the most expensive accepted keys, whose numbers all have the
// maximum size, are cheap to check.
func TestMostExpensiveKey(t *testing.T) {
	certificate, _ := pair(t, ec(t))
	for name, der := range map[string][]byte{"two primes": hostile(t, maxKeyBits, 0), "four": hostile(t, maxKeyBits, 2)} {
		t.Run(name, func(t *testing.T) {
			boundstest.Cheap(t, func() {
				if _, err := Check(certificate, block("RSA PRIVATE KEY", der)); err == nil {
					t.Error("no error")
				}
			})
		})
	}
}

// TestPublic verifies that the reported fields of a certificate are bounded and printable.
func TestPublic(t *testing.T) {
	leaf := &x509.Certificate{
		NotAfter: time.Unix(1, 0), Issuer: pkix.Name{Organization: []string{"an\x00\n organization \xff" + strings.Repeat("x", 999)}},
	}
	for range 40 {
		leaf.DNSNames = append(leaf.DNSNames, strings.Repeat("y", 999))
	}
	got := public(leaf)
	if len(got.DNSNames) != MaxNames || len(got.DNSNames[0]) != maxNameBytes || !got.NotAfter.Equal(leaf.NotAfter) {
		t.Errorf("%d names of %d bytes until %s", len(got.DNSNames), len(got.DNSNames[0]), got.NotAfter)
	}
	if !strings.HasPrefix(got.Issuer, "an\uFFFD\uFFFD organization \uFFFD") ||
		len(got.Issuer) > 4*maxNameBytes || !utf8.ValidString(got.Issuer) {
		t.Errorf("issuer %q", got.Issuer)
	}
}

func FuzzCheck(f *testing.F) {
	certificate, key := pair(f, ec(f))
	f.Add(certificate, key)
	f.Add(certificate, block("RSA PRIVATE KEY", hostile(f, 2048, 1)))
	f.Add(block("CERTIFICATE", []byte{0x30, 0x84, 0xff, 0xff, 0xff, 0xff}), []byte("-----BEGIN"))
	f.Fuzz(func(t *testing.T, certificate, key []byte) {
		for _, both := range [][2][]byte{{certificate, key}, {block("CERTIFICATE", certificate), block("RSA PRIVATE KEY", key)}} {
			boundstest.Cheap(t, func() { _, _ = Check(both[0], both[1]) })
		}
	})
}
