// Package printer prints untrusted text: object names, messages, log lines, file contents, and
// errors of the API server. Terminals interpret control characters, and a line break in a name ends
// a comment. The package escapes both.
package printer

import (
	"crypto/rand"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"golang.org/x/term"
)

// Line returns a text as one line, for example for a comment or a table cell. It escapes each
// character that unicode.IsPrint rejects, in the form of Go. Line(Line(text)) equals Line(text).
func Line(text string) string { return replace(text, "", inGo) }

// Text returns a text as Line does, but with its line feeds and tabs.
func Text(text string) string { return replace(text, "\n\t", inGo) }

// inGo spells a character as a Go string literal does.
func inGo(r rune) string { return strings.Trim(strconv.QuoteRune(r), "'") }

// replace spells each character that is neither printable nor in exempt. Invalid UTF-8 bytes become
// \xNN.
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

// Writer writes to a standard stream. It escapes as Text does, so a command cannot forget to
// escape, and lets only the colors of Painter through. Each Write must contain whole characters.
// Concurrent Writes do not mix.
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

// mark starts a color until Writer replaces it by control characters. It is random, so untrusted
// text cannot contain it.
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
