package conversion

import (
	"bufio"
	"encoding/json"
	"maps"
	"slices"
	"unicode/utf8"

	"github.com/example/nginx-operator/internal/codec"
)

// maxPiece bounds the text that is encoded at a time, in bytes.
const maxPiece = 4 << 10

// output writes a JSON text. Unlike a json.Encoder, it never holds a whole value in memory. Flush
// returns the first error.
type output struct{ *bufio.Writer }

// text writes a part unchanged.
func (o output) text(part string) output {
	_, _ = o.WriteString(part)
	return o
}

// json writes a value. Objects have their keys in order.
func (o output) json(value any) output {
	switch value := value.(type) {
	case map[string]any:
		o.text("{")
		for i, key := range slices.Sorted(maps.Keys(value)) {
			if i > 0 {
				o.text(",")
			}
			o.quoted(key).text(":").json(value[key])
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
		_, _ = o.Write(value)
		return o
	case string:
		return o.quoted(value)
	default:
		raw, _ := codec.Encode(value)
		return o.text(string(raw))
	}
}

// quoted writes a string in pieces, which end with a character.
func (o output) quoted(text string) output {
	o.text(`"`)
	for len(text) > 0 {
		end := min(len(text), maxPiece)
		for end < len(text) && end > maxPiece-utf8.UTFMax && !utf8.RuneStart(text[end]) {
			end--
		}

		raw, _ := codec.Encode(text[:end])
		_, _ = o.Write(raw[1 : len(raw)-1])
		text = text[end:]
	}

	return o.text(`"`)
}
