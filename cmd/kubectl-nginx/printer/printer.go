// Package printer prints untrusted text: object names, messages, log lines, file contents, and
// errors of the API server. Terminals interpret control characters, and a line break in a name ends
// a comment. The package escapes both.
package printer

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	yaml3 "go.yaml.in/yaml/v3"
	"golang.org/x/term"
	"sigs.k8s.io/yaml"
)

// Line returns a text as one line, for example for a comment or a table cell. It escapes each
// character that unicode.IsPrint rejects, in the form of Go. Line(Line(text)) equals Line(text).
func Line(text string) string { return replace(text, "", inGo) }

// Text returns a text as Line does, but with its line feeds and tabs.
func Text(text string) string { return replace(text, "\n\t", inGo) }

func inGo(r rune) string { return strings.Trim(strconv.QuoteRune(r), "'") }

// replace escapes characters that are neither printable nor exempt. Invalid UTF-8 becomes \xNN.
func replace(text, exempt string, spell func(rune) string) string {
	var replaced strings.Builder
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&replaced, `\x%02x`, text[0])
		case unicode.IsPrint(r) || strings.ContainsRune(exempt, r):
			replaced.WriteString(text[:size])
		default:
			replaced.WriteString(spell(r))
		}
		text = text[size:]
	}

	return replaced.String()
}

// Writer writes to a standard stream. It escapes as Text does, so a command cannot forget it, and
// lets only the colors of Painter through. Each Write must contain whole characters.
type Writer struct {
	// Painter colors for this stream: on a terminal, unless NO_COLOR is set (https://no-color.org).
	Painter

	to io.Writer
	mu sync.Mutex
}

// NewWriter returns a Writer to a stream.
func NewWriter(to io.Writer) *Writer {
	file, isFile := to.(*os.File)
	isTerminal := isFile && term.IsTerminal(int(file.Fd())) //nolint:gosec // a file descriptor is small
	return &Writer{Painter: Painter{isTerminal && os.Getenv("NO_COLOR") == ""}, to: to}
}

// Write implements io.Writer.
func (w *Writer) Write(text []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()

	if _, err := io.WriteString(w.to, strings.ReplaceAll(Text(string(text)), mark, "\x1b[")); err != nil {
		return 0, err
	}
	return len(text), nil
}

// PainterOf returns the Painter for a stream. The Painter is off if the stream is not a Writer.
func PainterOf(to io.Writer) Painter {
	if writer, ok := to.(*Writer); ok {
		return writer.Painter
	}
	return Painter{}
}

// mark starts a color for Writer. It is random, so untrusted text cannot contain it.
var mark = rand.Text()

// Painter colors text that a Writer prints, if it is on.
type Painter struct{ On bool }

// The colors, as in terminals (ECMA-48).
const (
	Red    = "31"
	Green  = "32"
	Yellow = "33"
	Cyan   = "36"
	Bold   = "1"
)

// Paint returns a text in a color. Escape untrusted text first, because Paint does not escape it.
func (p Painter) Paint(color, text string) string {
	if !p.On || text == "" {
		return text
	}
	return mark + color + "m" + text + mark + "0m"
}

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

// restyle sorts fields, and unquotes texts that need no escape, as the usual encoder does.
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
