package main

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
)

// signed returns the signature of a text as `cosign sign-blob --key` writes it, and as `cosign
// verify-blob --key --signature` and `openssl dgst -sha256 -verify` read it: the ASN.1 form of an
// ECDSA signature over the SHA-256 of the text, in base64. The same key and text give the same
// signature (RFC 6979). Without the file of a key, signed returns nil.
func signed(text []byte, keyFile string) ([]byte, error) {
	if keyFile == "" {
		return nil, nil
	}
	raw, err := os.ReadFile(keyFile)
	if err != nil {
		return nil, fmt.Errorf("failed to read RELEASE_KEY: %w", err)
	}
	key, err := parseKey(raw)
	if err != nil {
		return nil, fmt.Errorf("failed to read RELEASE_KEY %s: %w. Create a key with "+
			"`openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256`", keyFile, err)
	}
	sum := sha256.Sum256(text)
	signature, err := key.Sign(nil, sum[:], crypto.SHA256)
	if err != nil {
		return nil, fmt.Errorf("failed to sign: %w", err)
	}
	return []byte(base64.StdEncoding.EncodeToString(signature)), nil
}

// parseKey reads an unencrypted ECDSA key on P-256, in the form of PKCS #8 and PEM.
func parseKey(raw []byte) (*ecdsa.PrivateKey, error) {
	block, _ := pem.Decode(raw)
	if block == nil {
		return nil, errors.New("it is not PEM")
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, err
	}
	ec, ok := key.(*ecdsa.PrivateKey)
	if !ok || ec.Curve != elliptic.P256() {
		return nil, errors.New("it is no ECDSA key on the curve P-256")
	}
	return ec, nil
}
