package printer

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// hostile has the form as one line of texts that break a line, control a terminal, or reorder output.
var hostile = map[string]string{
	"web-1 é 日本 \u00ad": `web-1 é 日本 \u00ad`,
	"a\nb":              `a\nb`,
	"a\r\nb":            `a\r\nb`,
	"a\tb\vc\fd":        `a\tb\vc\fd`,
	"a\u0085b":          `a\u0085b`,
	"a\u2028b\u2029c":   `a\u2028b\u2029c`,
	"\x1b[2J\x1b]0;t\a": `\x1b[2J\x1b]0;t\a`,
	"\u009b31m":         `\u009b31m`,
	"\x00\x7f":          `\x00\x7f`,
	"\u202e\u2066\u200f\ufeff\U000e0041\ue000": `\u202e\u2066\u200f\ufeff\U000e0041\ue000`,
	"\x9b31m\xe2\x80":                          `\x9b31m\xe2\x80`,
	`'a' \n "b"`:                               `'a' \n "b"`,
	"a\u00a0b":                                 `a\u00a0b`,
}

func assertPlain(t *testing.T, text string) {
	t.Helper()
	at := strings.IndexFunc(text, func(r rune) bool { return !unicode.IsPrint(r) && r != '\n' && r != '\t' })
	if at >= 0 || !utf8.ValidString(text) {
		t.Errorf("byte %d of %q is not printable", at, text)
	}
}

// FuzzLine verifies that the text of an attacker becomes one printable line.
func FuzzLine(f *testing.F) {
	for text, want := range hostile {
		if got := Line(text); got != want {
			f.Errorf("got %s, want %s", got, want)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		line := Line(text)
		if assertPlain(t, line); strings.ContainsAny(line, "\n\t") {
			t.Errorf("%q is not one line", line)
		}
		if again := Line(line); again != line {
			t.Errorf("%q becomes %q", line, again)
		}
		if got := strings.Count(Text(text), "\n"); got != strings.Count(text, "\n") {
			t.Errorf("%d line feeds", got)
		}
		assertPlain(t, Text(text))
	})
}

// FuzzStructures verifies that structures are decoded unchanged, and that a Writer escapes nothing.
func FuzzStructures(f *testing.F) {
	for text := range hostile {
		f.Add(text, "key")
		f.Add("value", text)
		f.Add("first line\n  "+text+"\n\n", "a: b")
	}
	f.Fuzz(func(t *testing.T, text, key string) {
		value := map[string]any{key: []any{text, map[string]any{"a": "\u202e", key + text: text, "n": 1.5, "t": true, "s": "true"}}}
		plain, err := json.Marshal(value)
		var want any
		if err = errors.Join(err, json.Unmarshal(plain, &want)); err != nil { // U+FFFD replaces invalid bytes
			t.Fatal(err)
		}
		for name, encode := range map[string]func(any) ([]byte, error){"json": JSON, "yaml": YAML} {
			raw, err := encode(value)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			var printed bytes.Buffer
			if _, err := NewWriter(&printed).Write(raw); err != nil {
				t.Fatal(err)
			}
			if assertPlain(t, string(raw)); printed.String() != string(raw) {
				t.Errorf("%s: printed\n%s\nof\n%s", name, printed.String(), raw)
			}
			var read any
			if err := decode[name](raw, &read); err != nil {
				t.Fatalf("%s: %v of\n%s", name, err, raw)
			}
			if diff := cmp.Diff(want, read); diff != "" {
				t.Errorf("%s: -want +got:\n%s\nof\n%s", name, diff, raw)
			}
		}
	})
}

var decode = map[string]func([]byte, any) error{
	"json": json.Unmarshal,
	"yaml": func(raw []byte, into any) error { return yaml.Unmarshal(raw, into) },
}

// TestYAML verifies that texts of several lines stay readable, as with kubectl, next to escapes.
func TestYAML(t *testing.T) {
	for want, value := range map[string]any{
		"a:\n- |\n  one\n  two\n- \"true\"\n":                  map[string]any{"a": []any{"one\ntwo\n", "true"}},
		"a:\n- |\n  one\n  two\n- \"true\"\n- \"x\\u202ey\"\n": map[string]any{"a": []any{"one\ntwo\n", "true", "x\u202ey"}},
	} {
		if got, err := YAML(value); err != nil || string(got) != want {
			t.Errorf("got (%v)\n%s\nwant\n%s", err, got, want)
		}
	}
}

// TestWriter verifies that only Painter writes colors.
func TestWriter(t *testing.T) {
	for _, test := range []struct {
		paint Painter
		want  string
	}{
		{Painter{On: true}, "\x1b[31mred\x1b[0m\t\\x1b[32m\\u0085\n"},
		{Painter{}, "red\t\\x1b[32m\\u0085\n"},
	} {
		var out bytes.Buffer
		text := test.paint.Paint(Red, "red") + "\t\x1b[32m\u0085\n"
		n, err := NewWriter(&out).Write([]byte(text))
		if err != nil || n != len(text) || out.String() != test.want {
			t.Errorf("wrote %d of %d bytes (%v): %q, want %q", n, len(text), err, out.String(), test.want)
		}
	}
	if paint := PainterOf(NewWriter(&bytes.Buffer{})); paint.On {
		t.Error("a buffer is no terminal")
	}
}
