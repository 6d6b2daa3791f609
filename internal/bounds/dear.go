package bounds

import (
	"bytes"
	"strings"
)

// quantityChars are the characters of a quantity, whatever its length and its exponent.
const quantityChars = "0123456789+-.eEinumkKMGTP"

// mayBeDear reports whether a text or a number in a JSON text may be a quantity that is not cheap to compute with, wherever it is. It
// takes no memory. What it lets through need not be a quantity, and what it does not is held against IsQuantity by who knows where
// quantities are.
func mayBeDear(raw []byte) bool {
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
		if isDear(token) {
			return true
		}
	}
	return false
}

// endOfText returns where the quotation mark is that ends a text.
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

// isDear reports whether a token has only characters of a quantity, or escapes that can stand for them, and is longer than one may be, has
// a longer exponent, or space around it: the decoder of a quantity cuts that off, and computes.
func isDear(token []byte) bool {
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
	return len(token) > min(len(trimmed), maxQuantityLength) || exponent >= 0 && len(trimmed)-exponent > longest
}
