package nginxconf

import (
	"fmt"
	"slices"
	"strings"
)

// Bounds of a configuration. The reader enforces them before it keeps anything, so every text is
// cheap to read.
const (
	maxDepth      = 32     // of nested blocks
	maxDirectives = 50_000 // including entries of a map or geo
	maxWords      = 200_000
	maxWord       = 4090 // bytes of a word, because nginx's buffer has 4096
)

const (
	unfinished = `the text ends before the directive does; end it with ";" and close every quote`
	unclosed   = `the text ends inside of a block; close it with "}"`

	tooManyBraces = `unexpected "}": every block is closed already; remove it (the text is inside the http context and needs no brace for it)`
	noCondition   = "the condition has to be in parentheses, for example `if ($request_method = POST) { ... }`"

	splitRemedy = "split it into several NginxOperators, or include long lists from an image of your own"
)

// directive is a directive of the user's text, or an entry of a block such as map.
type directive struct {
	name    string
	line    int
	file    string // the path of the file of spec.files, or "" for the user's text itself
	args    []string
	block   []*directive
	isBlock bool       // distinguishes an empty block from no block
	parent  *directive // nil in the http context
	context uint
}

// first returns the first argument, or "" if there is none.
func (d *directive) first() string {
	if len(d.args) == 0 {
		return ""
	}
	return d.args[0]
}

func syntaxError(line int, directive, format string, args ...any) *Problem {
	return &Problem{Line: line, Directive: quoted(directive), Message: fmt.Sprintf(format, args...)}
}

// parse returns the directives of a text, and the first syntax error. It reads the text once and
// keeps nothing beyond the bounds.
func parse(text string) ([]*directive, *Problem) {
	return (&reader{text: text, line: 1}).parse()
}

func (r *reader) parse() ([]*directive, *Problem) {
	// Directives beyond the bounds are counted and not kept.
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
				return top.block, syntaxError(line, words[0], unclosed)
			}

			// The Lua code is an additional argument, as in crossplane's tables.
			if d != beyond {
				d.isBlock, d.args = false, append(d.args, r.text[start:r.pos-1])
			}

			continue
		}

		if around = append(around, d); len(around) > maxDepth+1 {
			return top.block, syntaxError(line, words[0],
				"blocks may be nested %d deep, and this is one more; put what is in it into a block further out", maxDepth)
		}
	}
}

// checkEnd checks the end of a statement at a depth.
func (r *reader) checkEnd(words []string, line int, end byte, depth int) *Problem {
	switch {
	case len(words) > 0 && end == 0:
		return syntaxError(line, words[0], unfinished)
	case len(words) > 0 && end == '}':
		return syntaxError(line, words[0], `there is no ";" at its end; add it before the "}"`)
	case len(words) > 0:
		return nil
	case end == 0 && depth > 0:
		return syntaxError(r.line, "", unclosed)
	case end == '}' && depth == 0:
		return syntaxError(line, "", tooManyBraces)
	case end == ';' || end == '{':
		return syntaxError(line, "", "unexpected %q; remove it", string(end))
	}
	return nil
}

// tooMany returns a problem if the text has more directives or words than the maximum.
func (r *reader) tooMany() *Problem {
	switch {
	case r.directives > maxDirectives:
		return syntaxError(0, "",
			"the configuration has %d directives and entries of maps, and may have %d: %s", r.directives, maxDirectives, splitRemedy)
	case r.words > maxWords:
		return syntaxError(0, "", "the configuration has %d words, and may have %d: %s", r.words, maxWords, splitRemedy)
	}
	return nil
}

// isRepetition reports whether a text starts with the inner part of a repetition in a regular
// expression, such as "2,4}". Without quotes, nginx reads the brace before it as the start of a
// block.
func isRepetition(text string) bool {
	rest := strings.TrimLeft(text, "0123456789,")
	return rest != text && text[0] != ',' && strings.HasPrefix(rest, "}")
}

// checkStatement finds errors in the words of one directive.
func (r *reader) checkStatement(words []string, line int, end byte) *Problem {
	switch last := words[len(words)-1]; {
	case end == '{' && !isSpace(r.text[r.pos-2]) && isRepetition(r.text[r.pos:min(r.pos+16, len(r.text))]):
		return syntaxError(line, words[0], "a regular expression with braces has to be in quotes")
	case end == '{' && words[0] == "if":
		condition := strings.Trim(strings.Join(words[1:min(len(words), 4)], ""), "() ")
		if len(words) < 2 || !strings.HasPrefix(words[1], "(") || !strings.HasSuffix(last, ")") || condition == "" {
			return syntaxError(line, "if", noCondition)
		}
	}
	return nil
}

func isInclude(d *directive) bool { return d.name == "include" }
