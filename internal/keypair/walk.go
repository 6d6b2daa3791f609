package keypair

import (
	"errors"
	"fmt"
)

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

// next returns the first value of a DER text.
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
