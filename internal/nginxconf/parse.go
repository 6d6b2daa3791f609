package nginxconf

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	crossplane "github.com/nginxinc/nginx-go-crossplane"
)

// maxWord is the longest word that nginx reads: its buffer has 4096 bytes.
const maxWord = 4090

const unfinished = `the text ends before the directive does; end it with ";" and close every quote`

// scan is what the words of a text tell.
type scan struct {
	// top are the names of the directives outside of all blocks.
	top map[string]bool
	// problem is the first reason why nginx could not read the text, nil where it can.
	problem *Problem
}

// scanWords reads all of a text, also behind a mistake. The parser is only given what is well-formed: it takes a closing
// brace after a forgotten semicolon for a part of the directive.
func scanWords(text string, options crossplane.LexOptions) scan {
	s := scan{top: map[string]bool{}}
	depth, line, end := 0, 0, 1
	var words []crossplane.NgxToken
	var before Problem
	for token := range crossplane.LexWithOptions(strings.NewReader(text), options) {
		end = token.Line
		if token.Error != nil {
			if len(words) > 0 {
				s.fail(line, words[0].Value, unfinished)
			}
			s.fail(token.Line, "", syntaxMessage(token.Error))
			continue
		}
		if !token.IsQuoted && strings.HasPrefix(token.Value, "#") {
			continue
		}
		terminator := !token.IsQuoted && (token.Value == ";" || token.Value == "{" || token.Value == "}")
		if !terminator {
			if len(words) == 0 {
				line = token.Line
			}
			if len(token.Value) > maxWord {
				s.fail(token.Line, nameOf(words), fmt.Sprintf("nginx reads no word of more than %d bytes, and this one has %d; split it", maxWord, len(token.Value)))
			}
			words = append(words, token)
			continue
		}
		s.checkStatement(words, token, line, before)
		if depth == 0 && len(words) > 0 {
			s.top[words[0].Value] = true
		}
		before = Problem{Line: line, Directive: nameOf(words)}
		words = nil
		switch token.Value {
		case "{":
			depth++
		case "}":
			depth--
		}
	}
	switch {
	case len(words) > 0:
		s.fail(line, words[0].Value, unfinished)
	case depth > 0:
		s.fail(end, "", `the text ends inside of a block; close it with "}"`)
	}
	return s
}

// braced is what is between the braces of a regular expression that is not in quotes.
var braced = regexp.MustCompile(`^[0-9]+(,[0-9]*)?$`)

// checkStatement looks at one directive without what is in its block. before is the one that ended before it.
func (s *scan) checkStatement(words []crossplane.NgxToken, terminator crossplane.NgxToken, line int, before Problem) {
	switch {
	case len(words) == 0 && terminator.Value != "}":
		s.fail(terminator.Line, "", fmt.Sprintf("unexpected %q; remove it", terminator.Value))
	case len(words) == 1 && terminator.Value == "}" && braced.MatchString(words[0].Value):
		s.fail(before.Line, before.Directive, "a regular expression with braces has to be in quotes")
	case len(words) > 0 && terminator.Value == "}":
		s.fail(line, words[0].Value, `there is no ";" at its end; add it before the "}"`)
	case len(words) > 0 && words[0].Value == "if" && terminator.Value == "{":
		if len(words) < 2 || !strings.HasPrefix(words[1].Value, "(") || !strings.HasSuffix(words[len(words)-1].Value, ")") {
			s.fail(line, "if", "the condition has to be in parentheses, for example `if ($request_method = POST) { ... }`")
		}
	}
}

func (s *scan) fail(line int, directive, message string) {
	if s.problem == nil {
		s.problem = &Problem{Line: line, Directive: directive, Message: message}
	}
}

func nameOf(words []crossplane.NgxToken) string {
	if len(words) == 0 {
		return ""
	}
	return words[0].Value
}

func syntaxMessage(err error) string {
	var parseError *crossplane.ParseError
	if !errors.As(err, &parseError) {
		return err.Error()
	}
	if strings.HasPrefix(parseError.What, "unexpected end of file") {
		return `the text ends inside of a block; close it with "}"`
	}
	if parseError.What == `unexpected "}"` {
		return `unexpected "}": every block is closed already; remove it (the text needs no brace for the http context)`
	}
	return parseError.What + "; remove it"
}

// parse returns the directives of a text, or the first reason why nginx could not read it.
func parse(text string, known release) (crossplane.Directives, *Problem) {
	scanned := scanWords(text, known.lexOptions())
	if scanned.problem != nil {
		return nil, scanned.problem
	}
	payload, err := crossplane.Parse(ServersFile, &crossplane.ParseOptions{
		Open:       func(string) (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(text)), nil },
		LexOptions: known.lexOptions(),
		// Which directives there are depends on the image, and what is wrong with one is said in the operator's words.
		SkipDirectiveContextCheck: true,
		SkipDirectiveArgsCheck:    true,
		SingleFile:                true,
	})
	if err != nil {
		return nil, &Problem{Message: err.Error()}
	}
	if len(payload.Errors) > 0 {
		return nil, entryProblem(payload.Errors[0])
	}
	return payload.Config[0].Parsed, nil
}

// entryProblem says what is wrong with an entry of a block such as map; nothing else is left to the parser.
func entryProblem(failure crossplane.PayloadError) *Problem {
	problem := &Problem{Message: failure.Error.Error()}
	var parseError *crossplane.ParseError
	if errors.As(failure.Error, &parseError) {
		problem.Message, problem.Directive = parseError.What, parseError.BlockCtx
	}
	if failure.Line != nil {
		problem.Line = *failure.Line
	}
	if problem.Message == "invalid number of parameters" {
		problem.Message = "an entry of this block is a key and a value, as in `key value;`"
	}
	return problem
}
