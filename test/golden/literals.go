// Package golden verifies that the messages of a package are in its golden files, which reviewers
// read as one text.
package golden

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var (
	// verbs are the verbs of a format, and the escaped percent sign.
	verbs = regexp.MustCompile(`%(%|(\[\d+\])?[-+#0]*[0-9*]*(\.[0-9*]*)?[a-zA-Z])`)
	// words are the first two words of a sentence. A text without them is an identifier or a path.
	words = regexp.MustCompile(`\pL[\pL,;:'")]* +['"(]?\pL`)
)

// wildcard stands for a value in a message. No message has this byte.
const wildcard = "\x00"

// Literal is a message in the source of a package. The values in it are wildcards.
type Literal struct {
	Position token.Position
	text     string
}

// String returns the text with an ellipsis for each value.
func (l Literal) String() string { return strings.ReplaceAll(l.text, wildcard, "…") }

// In reports whether a text has this message, with any values.
func (l Literal) In(text string) bool {
	var pattern strings.Builder
	for i, part := range strings.Split(strings.Trim(l.text, wildcard+" \n"), wildcard) {
		if i > 0 {
			pattern.WriteString(`[^\n]*?`)
		}
		pattern.WriteString(regexp.QuoteMeta(part))
	}
	return regexp.MustCompile(pattern.String()).MatchString(text)
}

// Messages verifies that each message literal of the package in the working directory is in one of
// these files. A message literal is a string with at least two words, outside of tests, patterns,
// and tags. Exceptions are texts that are no messages, each with its reason.
func Messages(t *testing.T, exceptions map[string]string, files ...string) {
	t.Helper()
	var texts strings.Builder
	for _, name := range files {
		raw, err := os.ReadFile(name) //nolint:gosec // a file of testdata
		if err != nil {
			t.Fatal(err)
		}
		texts.Write(raw)
	}

	literals, err := Literals(".")
	if err != nil {
		t.Fatal(err)
	}
	if len(literals) == 0 {
		t.Error("the package has no message")
	}
	used := map[string]bool{}
	for _, literal := range literals {
		if _, excepted := exceptions[literal.String()]; excepted {
			used[literal.String()] = true
		} else if !literal.In(texts.String()) {
			t.Errorf("%s: no golden file has the message %q", literal.Position, literal)
		}
	}
	for text := range exceptions {
		if !used[text] {
			t.Errorf("no literal is %q, remove the exception", text)
		}
	}
}

// Literals returns the message literals of the package in a directory.
func Literals(dir string) ([]Literal, error) {
	files := token.NewFileSet()
	packages, err := parser.ParseDir(files, dir, func(file fs.FileInfo) bool { //nolint:staticcheck // build constraints do not matter
		return !strings.HasSuffix(file.Name(), "_test.go")
	}, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}

	var literals []Literal
	var inspect func(node ast.Node) bool
	inspect = func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.ImportSpec, *ast.StructType:
			return false
		case *ast.CallExpr:
			return !isPattern(node)
		case ast.Expr:
			text, values := textOf(node)
			if words.MatchString(strings.ReplaceAll(text, wildcard, "")) {
				literals = append(literals, Literal{files.Position(node.Pos()), text})
			}
			for _, value := range values {
				ast.Inspect(value, inspect)
			}
			return text == ""
		}
		return true
	}

	for _, parsed := range packages {
		ast.Inspect(parsed, inspect)
	}
	return literals, nil
}

// isPattern reports whether a call compiles a regular expression.
func isPattern(call *ast.CallExpr) bool {
	function, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	of, ok := function.X.(*ast.Ident)
	return ok && of.Name == "regexp"
}

// textOf returns the text of a string literal, or of a concatenation with at least one, in which
// wildcards replace verbs and other operands, and these operands. The text is empty if there is no
// literal.
func textOf(expression ast.Expr) (text string, values []ast.Expr) {
	switch expression := expression.(type) {
	case *ast.BasicLit:
		if literal, err := strconv.Unquote(expression.Value); err == nil && expression.Kind == token.STRING {
			return verbs.ReplaceAllStringFunc(literal, func(verb string) string {
				if verb == "%%" {
					return "%"
				}
				return wildcard
			}), nil
		}
	case *ast.BinaryExpr:
		left, leftValues := textOf(expression.X)
		right, rightValues := textOf(expression.Y)
		if expression.Op != token.ADD || left == "" && right == "" {
			return "", nil
		}
		if left == "" {
			left, leftValues = wildcard, []ast.Expr{expression.X}
		}
		if right == "" {
			right, rightValues = wildcard, []ast.Expr{expression.Y}
		}
		return left + right, slices.Concat(leftValues, rightValues)
	}
	return "", nil
}
