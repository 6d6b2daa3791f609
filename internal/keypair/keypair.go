// Package keypair checks certificates and keys in the Secrets of users. crypto/tls verifies a key
// with numbers of the key's own size, and no context ends that: a hostile key keeps a processor
// busy for an hour. The numbers are therefore counted and measured first.
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
	// maxBytes bounds the certificates with their chain, and the key. nginx reads the same number
	// of bytes.
	maxBytes = 256 << 10
	// maxBlocks bounds the PEM blocks. A chain has three or four.
	maxBlocks = 32
	// maxKeyBits is the largest RSA key with an acceptable handshake. The check of a key with 8,192
	// bits takes 50 ms.
	maxKeyBits = 8192
	// maxIntegers bounds the numbers of a key. An RSA key of two primes has nine, and its encoding
	// a few.
	maxIntegers = 16
	// maxDepth bounds the nesting of a certificate. With opened octet strings, extensions are about
	// ten levels deep.
	maxDepth = 24
	// maxValues bounds the values of a certificate. A certificate with hundreds of names has a few
	// thousand values.
	maxValues = 20_000
)

// Certificate has the public fields of a certificate, which every client of a server can read.
type Certificate struct {
	NotBefore, NotAfter time.Time
	// DNSNames are the first MaxNames names of the certificate.
	DNSNames []string
	// Issuer is the common name of the issuer, or its organization, or "" if it has neither.
	Issuer string
}

const (
	// MaxNames is the maximum number of reported names.
	MaxNames = 16
	// maxNameBytes is the length of a DNS name (RFC 1035). It bounds the issuer as well.
	maxNameBytes = 253
)

// Check returns the public fields of a certificate. It returns an error if nginx cannot use the
// certificate with the key. Both are in PEM form. The error never contains their content, because
// its readers need no permission to read Secrets.
func Check(certificate, key []byte) (Certificate, error) {
	if err := checkPEM(certificate, checkCertificate); err != nil {
		return Certificate{}, fmt.Errorf("the certificate %w", err)
	}
	if err := checkPEM(key, checkKey); err != nil {
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
	out := Certificate{NotBefore: leaf.NotBefore, NotAfter: leaf.NotAfter}
	for _, name := range leaf.DNSNames[:min(len(leaf.DNSNames), MaxNames)] {
		out.DNSNames = append(out.DNSNames, printable(name))
	}
	out.Issuer = printable(cmp.Or(append([]string{leaf.Issuer.CommonName}, leaf.Issuer.Organization...)...))
	return out
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
		return errors.New("there is no CERTIFICATE in PEM form")
	case !bytes.Contains(key, []byte("PRIVATE KEY-----")):
		return errors.New("there is no PRIVATE KEY in PEM form")
	default:
		return errors.New("the certificate and the key cannot be read, or do not belong together")
	}
}

func checkPEM(text []byte, check func(der []byte) error) error {
	if len(text) > maxBytes {
		return fmt.Errorf("has %d bytes, the limit is %d", len(text), maxBytes)
	}
	// The blocks are counted before decoding, because each search for the next block starts with
	// the complete rest.
	if bytes.Count(text, []byte("-----BEGIN")) > maxBlocks {
		return fmt.Errorf("has more than %d PEM blocks", maxBlocks)
	}
	for {
		block, rest := pem.Decode(text)
		if block == nil {
			return nil
		}
		if err := check(block.Bytes); err != nil {
			return err
		}
		text = rest
	}
}

func checkCertificate(der []byte) error {
	return (&walk{integers: maxValues, values: maxValues}).walk(der, 0)
}

func checkKey(der []byte) error {
	return (&walk{integers: maxIntegers, values: maxValues}).walk(der, 0)
}
