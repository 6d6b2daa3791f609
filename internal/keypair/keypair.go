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

// DER tags that walk handles.
const (
	tagInteger     = 0x02
	tagBitString   = 0x03
	tagOctetString = 0x04
	constructed    = 0x20
)

// walk traverses DER. Its fields count down the remaining integers and values.
type walk struct{ integers, values int }

// walk visits all values of a DER text, and of its octet and bit strings, which have the keys and
// extensions. A parser finds no integers in a string that is not DER.
func (w *walk) walk(der []byte, depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("is nested more than %d levels deep", maxDepth)
	}
	for len(der) > 0 {
		tag, value, rest, ok := next(der)
		if !ok {
			return nil
		}

		der = rest
		if w.values--; w.values < 0 {
			return errors.New("has too many values")
		}

		switch {
		case tag == tagInteger:
			if w.integers--; w.integers < 0 {
				return errors.New("has more numbers than a key of two primes")
			}
			if bits := 8 * len(value); bits > maxKeyBits+8 {
				return fmt.Errorf("has a number of %d bits, the limit is %d: create a smaller key", bits, maxKeyBits)
			}
		case tag == tagBitString && len(value) > 0:
			value = value[1:] // the number of unused bits
			fallthrough
		case tag == tagOctetString, tag&constructed != 0:
			if err := w.walk(value, depth+1); err != nil {
				return err
			}
		}
	}

	return nil
}

func next(der []byte) (tag byte, value, rest []byte, ok bool) {
	if len(der) < 2 {
		return 0, nil, nil, false
	}

	tag, length, header := der[0], int(der[1]), 2
	if length >= 0x80 {
		count := length & 0x7f
		if count == 0 || count > 4 || len(der) < 2+count {
			return 0, nil, nil, false
		}

		length = 0
		for _, one := range der[2 : 2+count] {
			length = length<<8 | int(one)
		}

		header += count
	}

	if length > len(der)-header {
		return 0, nil, nil, false
	}
	return tag, der[header : header+length], der[header+length:], true
}
