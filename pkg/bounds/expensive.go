package bounds

import (
	"bytes"
	"strings"
)

// quantityChars are the characters of a quantity of any length and exponent.
const quantityChars = "0123456789+-.eEinumkKMGTP"

// MayBeExpensive reports whether a string or a number in a JSON text could be a quantity that is
// expensive to compute. It allocates no memory. Values that pass are not necessarily quantities. If
// it returns true, the caller must check the fields with quantities with IsQuantity.
func MayBeExpensive(raw []byte) bool {
	for i := 0; i < len(raw); i++ {
		var token []byte
		switch char := raw[i]; {
		case char == '"':
			token = raw[i+1 : i+1+endOfText(raw[i+1:])]
			i += len(token) + 1
		case char == '-', char >= '0' && char <= '9':
			token = raw[i:]
			if end := bytes.IndexAny(token, ",]} \t\r\n"); end >= 0 {
				token = token[:end]
			}
			i += len(token)
		default:
			continue
		}
		if isExpensive(token) {
			return true
		}
	}
	return false
}

// endOfText returns the index of the quotation mark that ends a string.
func endOfText(text []byte) int {
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			return i
		case '\\':
			i++
		}
	}
	return len(text)
}

// isExpensive reports whether a token has only characters of a quantity, or escapes that can
// represent them, and is too long, has a too long exponent, or has spaces around it. The decoder of
// a quantity removes the spaces and computes the rest.
func isExpensive(token []byte) bool {
	trimmed, exponent := bytes.TrimSpace(token), -1
	for i, char := range trimmed {
		switch {
		case char == '\\':
			return true
		case strings.IndexByte(quantityChars, char) < 0:
			return false
		case (char == 'e' || char == 'E') && exponent < 0:
			exponent = i
		}
	}

	const longest = len("e99")
	return len(token) > min(len(trimmed), MaxQuantityLength) || exponent >= 0 && len(trimmed)-exponent > longest
}
