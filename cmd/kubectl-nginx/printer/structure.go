package printer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf16"

	yaml3 "go.yaml.in/yaml/v3"
	"sigs.k8s.io/yaml"
)

// JSON returns a value as indented JSON in which Writer escapes nothing. The encoder does not
// escape DEL, C1 controls, and bidirectional controls, and JSON has no \x.
func JSON(value any) ([]byte, error) {
	raw, err := json.MarshalIndent(value, "", "    ")
	return []byte(replace(string(raw), "\n", inJSON) + "\n"), err
}

// inJSON spells a character as a JSON string does: in two halves if it needs more than 16 bits.
func inJSON(r rune) string {
	var out strings.Builder
	for _, unit := range utf16.Encode([]rune{r}) {
		fmt.Fprintf(&out, `\u%04x`, unit)
	}
	return out.String()
}

// YAML returns a value as YAML in which Writer escapes nothing. YAML has escapes in double quotes
// only, and the usual encoder leaves a text with U+2028 or a bidirectional control unquoted.
func YAML(value any) ([]byte, error) {
	object, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}

	object = []byte(replace(string(object), "", inGo)) // JSON with these escapes is YAML
	raw, err := yaml.JSONToYAML(object)
	if err != nil || Text(string(raw)) == string(raw) {
		return raw, err
	}

	var root yaml3.Node
	if err := yaml3.Unmarshal(object, &root); err != nil {
		return nil, err
	}

	restyle(&root)
	var out bytes.Buffer
	encoder := yaml3.NewEncoder(&out)
	encoder.SetIndent(2)
	encoder.CompactSeqIndent()
	err = errors.Join(encoder.Encode(&root), encoder.Close())
	return []byte(Text(out.String())), err
}

// restyle sorts fields, and removes the quotes of texts that need no escape, as the usual encoder
// does.
func restyle(node *yaml3.Node) {
	switch node.Kind {
	case yaml3.ScalarNode:
		if Text(node.Value) == node.Value && (isPlain(node.Value) || strings.Contains(node.Value, "\n")) {
			node.Style = 0
		}
	case yaml3.MappingNode:
		fields := slices.Collect(slices.Chunk(node.Content, 2))
		slices.SortFunc(fields, func(a, b []*yaml3.Node) int { return strings.Compare(a[0].Value, b[0].Value) })
		node.Content = slices.Concat(fields...)
		fallthrough
	default:
		node.Style = 0
	}
	for _, inner := range node.Content {
		restyle(inner)
	}
}

// isPlain reports whether the usual encoder leaves a text unquoted.
func isPlain(text string) bool {
	raw, err := yaml.Marshal(text)
	return err == nil && string(raw) == text+"\n"
}
