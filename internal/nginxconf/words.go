package nginxconf

import (
	"strings"
	"unicode/utf8"
)

// reader reads a text byte by byte, as ngx_conf_read_token does.
type reader struct {
	text      string
	pos, line int
	reading
	// values are checked in each word.
	values Values
	// kept and starts are the memory for the words of a statement, and for the first ones of their
	// lines. The next statement reuses them.
	kept   []string
	starts []wordStart
}

// statement reads words and their end: ";", "{", "}", or 0 for the end of the text. line is the
// line of the first word.
func (r *reader) statement() (words []string, line int, end byte, problem *Problem) {
	words, r.starts = r.kept[:0], r.starts[:0]
	before := 0 // the line of the word before
	defer func() { r.kept = words }()
	for {
		r.skipSpace()
		if len(words) == 0 {
			line = r.line
		}

		if r.pos == len(r.text) {
			return words, line, 0, nil
		}
		if c := r.text[r.pos]; c == ';' || c == '{' || c == '}' {
			r.pos++
			return words, line, c, nil
		}

		start, at := r.pos, r.line
		word, ok := r.word()
		problem := r.checkWord(word, start, at, ok)
		if problem == nil && len(r.values) > 0 && r.words <= maxWords && r.directives <= maxDirectives {
			problem = r.values.checkWord(r.text[start:r.pos], r.text[r.pos:min(r.pos+1, len(r.text))], append(words, word)[0], at)
		}
		if problem != nil {
			return words, line, 0, problem
		}

		if len(words) > 0 && at > before && len(r.starts) < maxStarts && !isQuote(r.text[start]) {
			r.starts = append(r.starts, wordStart{len(words), at, before})
		}

		before = r.line
		if r.words++; r.words <= maxWords || len(words) == 0 {
			words = append(words, word)
		}
	}
}

// checkWord finds errors in a word, which starts at a position in a line. ok is the result of word.
func (r *reader) checkWord(word string, start, line int, ok bool) *Problem {
	quote := r.text[start]
	switch size := r.pos - start; {
	case size > maxWord && isQuote(quote):
		return syntaxError(line, longQuote, quote)
	case size > maxWord:
		return syntaxError(line, `too long parameter "%s..." started. The limit is %d bytes, and it has %d`,
			word[:10], maxWord, size)
	case ok:
		return nil
	case r.pos < len(r.text):
		next, _ := utf8.DecodeRuneInString(r.text[r.pos:])
		return syntaxError(line, afterQuote, string(next))
	case isQuote(quote):
		return syntaxError(line, openQuote)
	}
	return syntaxError(line, unfinished, word)
}

func isQuote(c byte) bool { return c == '"' || c == '\'' }

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\r' || c == '\n' }

// skipSpace skips to the next word. A comment can start only at the start of a word.
func (r *reader) skipSpace() {
	for ; r.pos < len(r.text); r.pos++ {
		switch c := r.text[r.pos]; {
		case c == '\n':
			r.line++
		case c == '#':
			end := strings.IndexByte(r.text[r.pos:], '\n')
			if end < 0 {
				r.pos = len(r.text)
				return
			}

			r.pos += end
			r.line++
		case !isSpace(c):
			return
		}
	}
}

// word reads a word, in quotes or up to a space, ";", or "{". It returns false if the text ends
// within the word, or if a quote is followed by an invalid character.
func (r *reader) word() (string, bool) {
	quote := byte(0)
	if c := r.text[r.pos]; isQuote(c) {
		quote = c
		r.pos++
	}

	start, variable := r.pos, false
	for ; r.pos < len(r.text); r.pos++ {
		c := r.text[r.pos]
		if c == '\n' {
			r.line++
		}

		switch {
		case c == '{' && variable:
			continue
		case c == '\\':
			r.pos++
			if r.pos < len(r.text) && r.text[r.pos] == '\n' {
				r.line++
			}
		case quote != 0 && c == quote:
			word := r.text[start:r.pos]
			r.pos++
			isAtEnd := r.pos == len(r.text) || isSpace(r.text[r.pos]) || strings.IndexByte(";{)", r.text[r.pos]) >= 0
			return unescape(word), isAtEnd
		case quote == 0 && (isSpace(c) || c == ';' || c == '{'):
			if c == '\n' {
				r.line-- // skipSpace counts it
			}
			return unescape(r.text[start:r.pos]), true
		}

		variable = c == '$'
	}

	r.pos = len(r.text)
	return r.text[start:], false
}

var escapes = strings.NewReplacer(`\"`, `"`, `\'`, `'`, `\\`, `\`, `\t`, "\t", `\r`, "\r", `\n`, "\n")

func unescape(word string) string {
	if strings.IndexByte(word, '\\') < 0 {
		return word
	}
	return escapes.Replace(word)
}
