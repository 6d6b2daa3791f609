// Package keypair checks certificates and keys in the Secrets of users. It counts and measures the
// numbers of a key first: crypto/tls would compute with those of a hostile key for an hour.
package keypair

import (
	"bytes"
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

const (
	// maxBytes bounds the certificates with their chain, and the key, as in nginx.
	maxBytes = 256 << 10
	// maxBlocks bounds the PEM blocks. A chain has three or four.
	maxBlocks = 32
	// maxKeyBits is the largest RSA key with an acceptable handshake. Its check takes 50 ms.
	maxKeyBits = 8192
	// maxIntegers bounds the numbers of a key. An RSA key of two primes has about twelve.
	maxIntegers = 16
	// maxDepth bounds the nesting of a certificate. Extensions are about ten levels deep.
	maxDepth = 24
	// maxValues bounds the values of a certificate. One with hundreds of names has a few thousand.
	maxValues = 20_000

	// MaxNames is the maximum number of reported names.
	MaxNames = 16
	// maxNameBytes is the length of a DNS name (RFC 1035). It bounds the issuer as well.
	maxNameBytes = 253
)

// Certificate has the public fields of a certificate, which every client of a server can read.
type Certificate struct {
	NotBefore, NotAfter time.Time
	// DNSNames are the first MaxNames names of the certificate.
	DNSNames []string
	// Issuer is the common name of the issuer, or its organization, or "" if it has neither.
	Issuer string
}

// Check returns the public fields of a certificate. It returns an error if nginx cannot use the
// certificate with the key. Both are in PEM form. The error never contains their content, because
// its readers need no permission to read Secrets.
func Check(certificate, key []byte) (Certificate, error) {
	if err := checkPEM(certificate, maxValues); err != nil {
		return Certificate{}, fmt.Errorf("the certificate %w", err)
	}
	if err := checkPEM(key, maxIntegers); err != nil {
		return Certificate{}, fmt.Errorf("the key %w", err)
	}

	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return Certificate{}, explain(certificate, key)
	}
	return public(pair.Leaf), nil
}

// public returns the reported fields of a certificate.
func public(leaf *x509.Certificate) Certificate {
	issuer := printable(cmp.Or(append([]string{leaf.Issuer.CommonName}, leaf.Issuer.Organization...)...))
	certificate := Certificate{NotBefore: leaf.NotBefore, NotAfter: leaf.NotAfter, Issuer: issuer}
	for _, name := range leaf.DNSNames[:min(len(leaf.DNSNames), MaxNames)] {
		certificate.DNSNames = append(certificate.DNSNames, printable(name))
	}
	return certificate
}

// printable truncates a user's text and replaces characters that cannot be printed on one line.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return utf8.RuneError
		}
		return r
	}, text[:min(len(text), maxNameBytes)])
}

// explain replaces the error of X509KeyPair, which repeats parts of its input.
func explain(certificate, key []byte) error {
	switch {
	case !bytes.Contains(certificate, []byte("-----BEGIN CERTIFICATE-----")):
		return errors.New("tls.crt has no PEM block CERTIFICATE")
	case !bytes.Contains(key, []byte("PRIVATE KEY-----")):
		return errors.New("tls.key has no PEM block PRIVATE KEY")
	default:
		return errors.New("private key does not match public key, or one of them cannot be parsed")
	}
}

// checkPEM returns why a PEM text exceeds a bound. The integers are those of one block.
func checkPEM(text []byte, integers int) error {
	if len(text) > maxBytes {
		return fmt.Errorf("has %d bytes, the limit is %d", len(text), maxBytes)
	}
	// Each search for the next block starts with the complete rest.
	if bytes.Count(text, []byte("-----BEGIN")) > maxBlocks {
		return fmt.Errorf("has more than %d PEM blocks", maxBlocks)
	}
	for {
		block, rest := pem.Decode(text)
		if block == nil {
			return nil
		}
		if err := (&walk{integers: integers, values: maxValues}).walk(block.Bytes, 0); err != nil {
			return err
		}

		text = rest
	}
}
