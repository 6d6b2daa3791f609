package printer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf16"

	"go.yaml.in/yaml/v2"
	kjson "sigs.k8s.io/json"
)

// JSON returns a value as indented JSON in which Writer escapes nothing. The encoder does not
// escape DEL, C1 controls, and bidirectional controls, and JSON has no \x.
func JSON(value any) ([]byte, error) {
	raw, err := json.MarshalIndent(value, "", "    ")
	return []byte(replace(string(raw), "\n", inJSON) + "\n"), err
}

// inJSON spells a character as a JSON string does: in two halves if it needs more than 16 bits.
func inJSON(r rune) string {
	var spelled strings.Builder
	for _, unit := range utf16.Encode([]rune{r}) {
		fmt.Fprintf(&spelled, `\u%04x`, unit)
	}
	return spelled.String()
}

// separators decodes the two characters that json.Marshal always escapes and that YAML prints.
var separators = strings.NewReplacer(`\\`, `\\`, `\u2028`, "\u2028", `\u2029`, "\u2029")

// YAML returns a value as YAML in which Writer escapes nothing. YAML has escapes in double quotes
// only, and the encoder leaves a text with U+2028 or a bidirectional control unquoted. A bell makes
// it use double quotes, in which it prints the bell as \a and a backslash as \\.
func YAML(value any) ([]byte, error) {
	object, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}

	spell := func(r rune) string { return `\u0007` + mark + `\` + inGo(r) }
	marked := replace(separators.Replace(string(object)), "", spell)
	var decoded any
	if err := kjson.UnmarshalCaseSensitivePreserveInts([]byte(marked), &decoded); err != nil {
		return nil, err
	}
	raw, err := yaml.Marshal(decoded)
	return bytes.ReplaceAll(raw, []byte(`\a`+mark+`\\`), []byte(`\`)), err
}
