package conversion

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
)

// maxPiece bounds the text that is encoded at a time, in bytes.
const maxPiece = 4 << 10

// output writes a JSON text until an error occurs. Unlike a json.Encoder, it never holds a whole
// value in memory.
type output struct {
	to  *bufio.Writer
	err error
}

// writers and readers are reused: the API server requests a conversion for each write of an object,
// for its watch cache of v1alpha1.
var (
	writers = sync.Pool{New: func() any { return bufio.NewWriterSize(nil, 32<<10) }}
	readers = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, 64<<10) }}
)

// newOutput returns an output that has to be ended.
func newOutput(to io.Writer) *output {
	writer := writers.Get().(*bufio.Writer)
	writer.Reset(to)
	return &output{to: writer}
}

// text writes a part unchanged.
func (o *output) text(part string) *output {
	if o.err == nil {
		_, o.err = o.to.WriteString(part)
	}
	return o
}

// end writes the buffered bytes, and returns the first error. The output must not be used after it.
func (o *output) end() error {
	if o.err == nil {
		o.err = o.to.Flush()
	}
	o.to.Reset(nil)
	writers.Put(o.to)
	o.to = nil
	return o.err
}

// json writes a value. Objects have their keys in order.
func (o *output) json(value any) *output {
	switch value := value.(type) {
	case map[string]any:
		separator := "{"
		for _, key := range slices.Sorted(maps.Keys(value)) {
			o.text(separator).quoted(key).text(":").json(value[key])
			separator = ","
		}
		if len(value) == 0 {
			o.text("{")
		}
		return o.text("}")
	case []any:
		o.text("[")
		for i, element := range value {
			if i > 0 {
				o.text(",")
			}
			o.json(element)
		}
		return o.text("]")
	case json.RawMessage:
		if o.err == nil {
			_, o.err = o.to.Write(value)
		}
		return o
	case string:
		return o.quoted(value)
	default:
		return o.encoded(value, "")
	}
}

// quoted writes a string in pieces.
func (o *output) quoted(text string) *output {
	o.text(`"`)
	for len(text) > 0 {
		end := min(len(text), maxPiece)
		for end < len(text) && end > maxPiece-utf8.UTFMax && !utf8.RuneStart(text[end]) {
			end--
		}
		o.encoded(text[:end], `"`)
		text = text[end:]
	}
	return o.text(`"`)
}

// encoded writes a small value without the surrounding characters. The text is not part of a web
// page, so "<" is not escaped to six bytes.
func (o *output) encoded(value any, around string) *output {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil && o.err == nil {
		o.err = err
	}
	return o.text(strings.TrimPrefix(strings.TrimSuffix(out.String(), around+"\n"), around))
}
