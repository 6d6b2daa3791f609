package nginxconf

import (
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
	unfinished  = `unexpected end of file, expecting ";" or "}". Write ";" after "%s"`
	unclosed    = `unexpected end of file, expecting "}". The "%s" block of line %d has no "}"`
	openQuote   = `unexpected end of file, expecting ";" or "}". Close the quote that starts in this line`
	longQuote   = `too long parameter, probably missing terminating "%c" character`
	afterQuote  = `unexpected "%s" after a quote. Write a space or ";" before it, or quote the whole word`
	noCondition = `invalid condition "%s". Write it in parentheses, for example if ($request_method = POST) { ... }`
	splitRemedy = "Split it into several NginxOperators, or include long lists from an image of your own"
)

// directive is a directive of the user's text, or an entry of a block such as map.
type directive struct {
	name    string
	line    int
	key     string // the key with the user's text if spec.config has a mask, or ""
	file    string // the path of the file of spec.files, or "" for the user's text itself
	args    []string
	block   []*directive
	starts  []wordStart
	isBlock bool       // distinguishes an empty block from no block
	parent  *directive // nil in the http context
	context uint
	unknown bool // has a value that admission does not know
}

// wordStart is a word without quotes that is the first of its line, and not the first of its
// directive. A semicolon may be missing before it.
type wordStart struct {
	word  int // the index in the words of the directive, of which the name is 0
	line  int
	after int // the line of the word before
}

// maxStarts is the maximum number of word starts of a directive that are checked.
const maxStarts = 64

// first returns the first argument, or "" if there is none.
func (d *directive) first() string {
	if len(d.args) == 0 {
		return ""
	}
	return d.args[0]
}

func syntaxError(line int, format string, args ...any) *Problem {
	return &Problem{Line: line, Message: messagef(format, args)}
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
			problem = r.checkEnd(words, line, end, around)
		}

		switch {
		case problem != nil:
			return top.block, problem
		case end == 0:
			return top.block, nil
		case end == '}':
			around = around[:len(around)-1]
			continue
		}

		d := beyond
		if r.directives++; r.directives <= maxDirectives && r.words <= maxWords {
			d = &directive{
				name: words[0], line: line, args: slices.Clone(words[1:]), starts: slices.Clone(r.starts), isBlock: end == '{',
			}
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
				return top.block, syntaxError(line, unclosed, words[0], line)
			}

			// The Lua code is an additional argument, as in crossplane's tables.
			if d != beyond {
				d.isBlock, d.args = false, append(d.args, r.text[start:r.pos-1])
			}

			continue
		}

		if around = append(around, d); len(around) > maxDepth+1 {
			return top.block, syntaxError(line, "more than %d nested blocks. Move this block into one further out", maxDepth)
		}
	}
}

// checkEnd checks the end of a statement in blocks. The first of these is the text.
func (r *reader) checkEnd(words []string, line int, end byte, around []*directive) *Problem {
	inner := around[len(around)-1]
	switch {
	case len(words) > 0 && end == 0:
		return syntaxError(line, unfinished, words[len(words)-1])
	case len(words) > 0 && end == '}':
		return syntaxError(line, `unexpected "}". Write ";" after "%s"`, words[len(words)-1])
	case len(words) > 0:
		return nil
	case end == 0 && r.tooMany() != nil:
		return r.tooMany()
	case end == 0 && len(around) > 1:
		return syntaxError(r.line, unclosed, inner.name, inner.line)
	case end == '}' && len(around) == 1:
		return syntaxError(line, `unexpected "}". Remove it: it closes no block`)
	case end == ';' || end == '{':
		return syntaxError(line, `unexpected "%c". Remove it`, end)
	}
	return nil
}

// tooMany returns a problem if the text has more directives or words than the maximum.
func (r *reader) tooMany() *Problem {
	switch {
	case r.directives > maxDirectives:
		return syntaxError(0, "the configuration has %d directives and map entries, and the limit is %d. "+splitRemedy,
			r.directives, maxDirectives)
	case r.words > maxWords:
		return syntaxError(0, "the configuration has %d words, and the limit is %d. "+splitRemedy, r.words, maxWords)
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
		return syntaxError(line, `unexpected "{" in the regular expression "%s". Put the whole expression in quotes`, last)
	case end == '{' && words[0] == "if":
		return checkCondition(words[1:], line)
	}
	return nil
}

// checkCondition finds errors in the condition of an if.
func checkCondition(words []string, line int) *Problem {
	if len(words) == 0 {
		return syntaxError(line, badCount+": it has no condition", "if")
	}

	first, last := words[0], words[len(words)-1]
	switch {
	case !strings.HasPrefix(first, "("):
		return syntaxError(line, noCondition, first)
	case !strings.HasSuffix(last, ")"):
		return syntaxError(line, noCondition, last)
	case strings.Trim(strings.Join(words[:min(len(words), 3)], ""), "() ") == "":
		return syntaxError(line, noCondition, "")
	}

	return nil
}

func isInclude(d *directive) bool { return d.name == "include" }
