package conversion

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"

	"github.com/example/nginx-operator/pkg/bounds"
)

// metered is the start of a review, up to its objects. A decoder holds a value in memory twice
// before its length is known, so the start must not be longer than an object.
type metered struct {
	from io.Reader
	read int
}

// Read returns an error if the client sends too much.
func (m *metered) Read(p []byte) (int, error) {
	if m.read > bounds.MaxBytes {
		return 0, errTooLong
	}
	n, err := m.from.Read(p[:min(len(p), 64<<10)])
	m.read += n
	return n, err
}

var errTooLong = fmt.Errorf("it has more than %d bytes, the limit of an object", bounds.MaxBytes)

// elements returns the texts of a JSON list after its opening bracket, up to the closing bracket.
// Each text is valid until the next one, and is in memory once. The texts are not validated as
// JSON. The last pair has an error if the list is incomplete, or if an element is too long.
func elements(list io.Reader) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		from, text := readers.Get().(*bufio.Reader), []byte(nil)
		from.Reset(list)
		defer func() {
			from.Reset(nil)
			readers.Put(from)
		}()
		for first := true; ; first = false {
			var end byte
			var err error
			if text, end, err = readElement(from, text[:0]); err != nil {
				yield(nil, err)
				return
			}
			text = bytes.TrimSpace(text)
			if empty := first && end == ']' && len(text) == 0; empty || !yield(text, nil) || end == ']' {
				return
			}
		}
	}
}

// readElement appends the text of an element. It returns the text and the comma or bracket after
// it.
func readElement(from io.ByteReader, text []byte) (out []byte, end byte, err error) {
	depth, inText, escaped := 0, false, false
	for {
		char, err := from.ReadByte()
		switch {
		case errors.Is(err, io.EOF):
			return text, 0, io.ErrUnexpectedEOF
		case err != nil:
			return text, 0, err
		case escaped:
			escaped = false
		case inText:
			inText, escaped = char != '"', char == '\\'
		case depth == 0 && (char == ',' || char == ']'):
			return text, char, nil
		case char == '"':
			inText = true
		case char == '{', char == '[':
			depth++
		case char == '}', char == ']':
			depth--
		}
		if len(text) >= bounds.MaxBytes {
			return text, 0, errTooLong
		}
		if len(text) == cap(text) {
			text = slices.Grow(text, max(len(text), 4<<10)) // append would leave more garbage
		}
		text = append(text, char)
	}
}
