// Package keypair looks at certificates and keys that somebody put into a Secret. crypto/tls tries a key out, with numbers whose
// size the key decides, and no context ends that: a hostile one keeps a processor busy for an hour. So what is in it is counted
// and measured first.
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
	// maxBytes bounds the certificates with their chain, and the key. nginx reads as much.
	maxBytes = 256 << 10
	// maxBlocks is how many PEM blocks there may be: a chain has three or four.
	maxBlocks = 32
	// maxKeyBits is the largest RSA key of which a handshake is bearable. One of 8,192 bits is checked in 50 ms.
	maxKeyBits = 8192
	// maxIntegers is how many numbers a key has: an RSA key of two primes has nine, and its wrapping a few.
	maxIntegers = 16
	// maxDepth is how deep a certificate is nested: its extensions are, with their octet strings opened, about ten deep.
	maxDepth = 24
	// maxValues is how many values a certificate has. One with hundreds of names has a few thousand.
	maxValues = 20_000
)

// Certificate is what every client of a server is told of its certificate.
type Certificate struct {
	NotBefore, NotAfter time.Time
	// DNSNames are the first of the names that it is for, at most MaxNames.
	DNSNames []string
	// Issuer is the common name of who signed it, or the organization, "" where it names neither.
	Issuer string
}

const (
	// MaxNames is how many names are told.
	MaxNames = 16
	// maxNameBytes is the length of a DNS name (RFC 1035), and bounds the issuer as well.
	maxNameBytes = 253
)

// Check returns what is public of a certificate, or why it and its key, both in PEM form, are of no use to nginx. The error never
// tells what is in them: who may read what it says need not be allowed to read Secrets.
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

// public takes from a certificate what is told of it.
func public(leaf *x509.Certificate) Certificate {
	out := Certificate{NotBefore: leaf.NotBefore, NotAfter: leaf.NotAfter}
	for _, name := range leaf.DNSNames[:min(len(leaf.DNSNames), MaxNames)] {
		out.DNSNames = append(out.DNSNames, printable(name))
	}
	out.Issuer = printable(cmp.Or(append([]string{leaf.Issuer.CommonName}, leaf.Issuer.Organization...)...))
	return out
}

// printable bounds a text that somebody else chose, and leaves in it what can be printed on a line.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return utf8.RuneError
		}
		return r
	}, text[:min(len(text), maxNameBytes)])
}

// explain tells in words of our own what X509KeyPair found: it repeats what it read.
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
		return fmt.Errorf("has %d bytes, and %d are the most that are read", len(text), maxBytes)
	}
	// Counted before they are decoded: each look for the next block begins with all that is left.
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
