package nginxconf

import (
	"fmt"
	"slices"
	"strings"
)

// Bounds of a configuration. They are checked while it is read, before anything is kept of what lies beyond them: what
// is let in costs little, whoever wrote it.
const (
	// maxDepth is how deep blocks may be nested.
	maxDepth = 32
	// maxDirectives and maxWords bound what is kept; an entry of a map or geo counts as a directive.
	maxDirectives = 50_000
	maxWords      = 200_000
	// maxWord is the longest word that nginx reads: its buffer has 4096 bytes.
	maxWord = 4090
)

const (
	unfinished = `the text ends before the directive does; end it with ";" and close every quote`
	unclosed   = `the text ends inside of a block; close it with "}"`

	tooManyBraces = `unexpected "}": every block is closed already; remove it (the text needs no brace for the http context)`
	noCondition   = "the condition has to be in parentheses, for example `if ($request_method = POST) { ... }`"

	wayOut = "split it into several NginxOperators, or include long lists from an image of your own"
)

// directive is a directive of the user's text, or an entry of a block such as map.
type directive struct {
	name string
	line int
	// file is the path of the file of spec.files that has it, "" for the user's text itself.
	file  string
	args  []string
	block []*directive
	// isBlock tells a directive with an empty block from one without.
	isBlock bool
	// parent is nil at the top, which is the http context.
	parent  *directive
	context uint
}

// first returns the first argument, "" where there is none.
func (d *directive) first() string {
	if len(d.args) == 0 {
		return ""
	}
	return d.args[0]
}

// reader reads a text byte by byte, as ngx_conf_read_token does.
type reader struct {
	text              string
	pos, line         int
	directives, words int
	// kept is the memory of the words of one statement, for the next.
	kept []string
}

// parse returns the directives of a text, and the first reason why nginx could not read it. It takes one pass, and
// keeps nothing that is beyond the bounds.
func parse(text string) ([]*directive, *Problem) {
	return (&reader{text: text, line: 1}).parse()
}

func (r *reader) parse() ([]*directive, *Problem) {
	// What is beyond the bounds is counted and not kept.
	top, beyond := &directive{}, &directive{}
	around := []*directive{top}
	for {
		words, line, end, problem := r.statement()
		inner := around[len(around)-1]
		if problem == nil {
			problem = r.checkEnd(words, line, end, len(around)-1)
		}
		switch {
		case problem != nil:
			return top.block, problem
		case end == 0:
			return top.block, r.tooMany()
		case end == '}':
			around = around[:len(around)-1]
			continue
		}
		d := beyond
		if r.directives++; r.directives <= maxDirectives && r.words <= maxWords {
			d = &directive{name: words[0], line: line, args: slices.Clone(words[1:]), isBlock: end == '{'}
			inner.block = append(inner.block, d)
		}
		if problem := r.checkStatement(words, line, end); problem != nil {
			return top.block, problem
		}
		if end != '{' {
			continue
		}
		if strings.HasSuffix(words[0], "_by_lua_block") {
			start := r.pos
			if !r.skipLua() {
				return top.block, &Problem{Line: line, Directive: words[0], Message: unclosed}
			}
			// It is as if Lua were one more argument; that is also how the table counts.
			if d != beyond {
				d.isBlock, d.args = false, append(d.args, r.text[start:r.pos-1])
			}
			continue
		}
		if around = append(around, d); len(around) > maxDepth+1 {
			return top.block, &Problem{Line: line, Directive: words[0], Message: fmt.Sprintf(
				"blocks may be nested %d deep, and this is one more; put what is in it into a block further out", maxDepth)}
		}
	}
}

// checkEnd looks at what ended a statement, depth blocks deep.
func (r *reader) checkEnd(words []string, line int, end byte, depth int) *Problem {
	switch {
	case len(words) > 0 && end == 0:
		return &Problem{Line: line, Directive: words[0], Message: unfinished}
	case len(words) > 0 && end == '}':
		return &Problem{Line: line, Directive: words[0], Message: `there is no ";" at its end; add it before the "}"`}
	case len(words) > 0:
		return nil
	case end == 0 && depth > 0:
		return &Problem{Line: r.line, Message: unclosed}
	case end == '}' && depth == 0:
		return &Problem{Line: line, Message: tooManyBraces}
	case end == ';' || end == '{':
		return &Problem{Line: line, Message: fmt.Sprintf("unexpected %q; remove it", string(end))}
	}
	return nil
}

// tooMany tells what the text has more of than is kept, nil where all was kept.
func (r *reader) tooMany() *Problem {
	switch {
	case r.directives > maxDirectives:
		return &Problem{Message: fmt.Sprintf(
			"the configuration has %d directives and entries of maps, and may have %d: %s", r.directives, maxDirectives, wayOut)}
	case r.words > maxWords:
		return &Problem{Message: fmt.Sprintf("the configuration has %d words, and may have %d: %s", r.words, maxWords, wayOut)}
	}
	return nil
}

// isRepetition reports whether a text begins with what stands between the braces of a regular expression, such as "2,4}".
// Without quotes nginx takes the brace before it for the begin of a block.
func isRepetition(text string) bool {
	rest := strings.TrimLeft(text, "0123456789,")
	return rest != text && text[0] != ',' && strings.HasPrefix(rest, "}")
}

// checkStatement looks at one directive whose words alone tell that nginx could not read it.
func (r *reader) checkStatement(words []string, line int, end byte) *Problem {
	switch last := words[len(words)-1]; {
	case end == '{' && !isSpace(r.text[r.pos-2]) && isRepetition(r.text[r.pos:min(r.pos+16, len(r.text))]):
		return &Problem{Line: line, Directive: words[0], Message: "a regular expression with braces has to be in quotes"}
	case end == '{' && words[0] == "if":
		condition := strings.Trim(strings.Join(words[1:min(len(words), 4)], ""), "() ")
		if len(words) < 2 || !strings.HasPrefix(words[1], "(") || !strings.HasSuffix(last, ")") || condition == "" {
			return &Problem{Line: line, Directive: "if", Message: noCondition}
		}
	}
	return nil
}

// statement reads words and what ends them: ";", "{", "}" or the end of the text (0). line is where the first of them is.
func (r *reader) statement() (words []string, line int, end byte, problem *Problem) {
	words = r.kept[:0]
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
		name := word
		if len(words) > 0 {
			name = words[0]
		}
		switch size := r.pos - start; {
		case size > maxWord:
			return words, line, 0, &Problem{Line: at, Directive: name, Message: fmt.Sprintf(
				"nginx reads no word of more than %d bytes, and this one has %d; split it", maxWord, size)}
		case !ok:
			return words, line, 0, &Problem{Line: line, Directive: name, Message: unfinished}
		}
		if r.words++; r.words <= maxWords || len(words) == 0 {
			words = append(words, word)
		}
	}
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\r' || c == '\n' }

// skipSpace goes to the next word; a comment begins only where a word could.
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

// word reads a word, in quotes or up to a blank, ";" or "{". It is false where the text ends before the word does, or
// where something stands right behind a quote.
func (r *reader) word() (string, bool) {
	quote := byte(0)
	if c := r.text[r.pos]; c == '"' || c == '\'' {
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
			return unescape(word), r.atGap()
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

// atGap reports whether what follows may follow a quote.
func (r *reader) atGap() bool {
	return r.pos == len(r.text) || isSpace(r.text[r.pos]) || strings.IndexByte(";{)", r.text[r.pos]) >= 0
}

var escapes = strings.NewReplacer(`\"`, `"`, `\'`, `'`, `\\`, `\`, `\t`, "\t", `\r`, "\r", `\n`, "\n")

func unescape(word string) string {
	if strings.IndexByte(word, '\\') < 0 {
		return word
	}
	return escapes.Replace(word)
}

// skipLua goes behind the brace that ends a block of Lua, and is false where there is none. Braces in strings and
// comments do not count.
func (r *reader) skipLua() bool {
	for depth := 1; r.pos < len(r.text); r.pos++ {
		switch rest := r.text[r.pos:]; {
		case rest[0] == '\n':
			r.line++
		case rest[0] == '{':
			depth++
		case rest[0] == '}':
			if depth--; depth == 0 {
				r.pos++
				return true
			}
		case rest[0] == '"', rest[0] == '\'':
			r.skipLuaString()
		case strings.HasPrefix(rest, "--") && luaBracket(rest[2:]) == "":
			r.skipTo("\n", 2)
		case luaBracket(rest) != "":
			r.skipTo(luaBracket(rest), 1)
		}
	}
	return false
}

// luaBracket returns what ends the long bracket that a text begins with, "" where it begins with none.
func luaBracket(text string) string {
	level := 1
	for level < len(text) && level <= maxDepth && text[level] == '=' {
		level++
	}
	if level >= len(text) || text[0] != '[' || text[level] != '[' {
		return ""
	}
	return "]" + strings.Repeat("=", level-1) + "]"
}

// skipTo goes to the last byte of what ends something, or to the end of the text.
func (r *reader) skipTo(end string, from int) {
	size := strings.Index(r.text[r.pos+from:], end)
	if size < 0 {
		r.pos = len(r.text) - 1
		return
	}
	passed := from + size + len(end) - 1
	r.line += strings.Count(r.text[r.pos:r.pos+passed+1], "\n")
	r.pos += passed
}

// skipLuaString goes to the quote that ends a string.
func (r *reader) skipLuaString() {
	quote := r.text[r.pos]
	for r.pos++; r.pos < len(r.text) && r.text[r.pos] != quote; r.pos++ {
		if r.text[r.pos] == '\\' && r.pos+1 < len(r.text) {
			r.pos++
		}
		if r.text[r.pos] == '\n' {
			r.line++
		}
	}
}
