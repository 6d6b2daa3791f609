package rows

import (
	"bufio"
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
	"testing"
)

// mutant is a small change of a source file.
type mutant struct {
	// file is relative to the root of the repository.
	file string
	line int
	// from and to are the bytes that text replaces.
	from, to int
	text     string
}

func (m mutant) String() string { return fmt.Sprintf("%s:%d: %s", m.file, m.line, m.text) }

// apply returns the source of the file with the change.
func (m mutant) apply(source []byte) []byte {
	return slices.Concat(source[:m.from], []byte(m.text), source[m.to:])
}

// opposite has the operator with which a mutation replaces another one.
var opposite = map[token.Token]token.Token{
	token.LAND: token.LOR, token.LOR: token.LAND, token.EQL: token.NEQ, token.NEQ: token.EQL,
	token.LSS: token.LEQ, token.LEQ: token.LSS, token.GTR: token.GEQ, token.GEQ: token.GTR,
}

// mutantsOf returns all mutants of a file: another operator, a negated condition, and a statement
// that is missing. Tests of errors are left out: in a run without these errors, nothing can find a
// mutant.
func mutantsOf(file string, source []byte) ([]mutant, error) {
	files := token.NewFileSet()
	parsed, err := parser.ParseFile(files, file, source, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var out []mutant
	add := func(node ast.Node, text string) {
		at := files.Position(node.Pos())
		out = append(out, mutant{file, at.Line, at.Offset, files.Position(node.End()).Offset, text})
	}
	textOf := func(node ast.Node) string {
		return string(source[files.Position(node.Pos()).Offset:files.Position(node.End()).Offset])
	}
	isAboutError := func(node ast.Node) bool {
		text := textOf(node)
		return strings.Contains(text, "err ") || strings.Contains(text, "err)") || strings.Contains(text, "Err")
	}
	ast.Inspect(parsed, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.BinaryExpr:
			if other, found := opposite[node.Op]; found && !isAboutError(node) {
				add(node, fmt.Sprintf("%s %s %s", textOf(node.X), other, textOf(node.Y)))
			}
		case *ast.IfStmt:
			if !isAboutError(node.Cond) {
				add(node.Cond, fmt.Sprintf("!(%s)", textOf(node.Cond)))
			}
		case *ast.ExprStmt:
			add(node, "")
		case *ast.AssignStmt:
			if node.Tok == token.ASSIGN && !isAboutError(node) {
				add(node, "")
			}
		}
		return true
	})
	return out, nil
}

// covered has the lines of each file that a run executes.
type covered map[string]map[int]bool

// parseCoverage reads a profile of go test -coverprofile.
func parseCoverage(profile []byte, module string) (covered, error) {
	out := covered{}
	lines := bufio.NewScanner(bytes.NewReader(profile))
	for lines.Scan() {
		name, block, found := strings.Cut(lines.Text(), ".go:")
		if !found {
			continue
		}
		var first, last, column, statements, count int
		if _, err := fmt.Sscanf(block, "%d.%d,%d.%d %d %d", &first, &column, &last, &column, &statements, &count); err != nil {
			return nil, fmt.Errorf("failed to read the profile: %q: %w", lines.Text(), err)
		}
		file := strings.TrimPrefix(name, module+"/") + ".go"
		for line := first; count > 0 && line <= last; line++ {
			if out[file] == nil {
				out[file] = map[int]bool{}
			}
			out[file][line] = true
		}
	}
	return out, lines.Err()
}

// TestMutants verifies the mutants of a function.
func TestMutants(t *testing.T) {
	const source = `package p

func f(a, b int) (err error) {
	if a < b && a != 0 {
		g()
	}
	if err != nil {
		return err
	}
	a = b
	return nil
}
`
	found, err := mutantsOf("p.go", []byte(source))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, one := range found {
		changed := one.apply([]byte(source))
		if bytes.Equal(changed, []byte(source)) {
			t.Errorf("%s changes nothing", one)
		}
		got = append(got, one.String())
	}
	want := []string{
		"p.go:4: !(a < b && a != 0)", "p.go:4: a < b || a != 0", "p.go:4: a <= b", "p.go:4: a == 0", "p.go:5: ", "p.go:10: ",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestCoverage verifies that only executed lines count.
func TestCoverage(t *testing.T) {
	const profile = "mode: set\nexample.com/m/internal/a.go:3.2,5.4 2 1\nexample.com/m/internal/a.go:7.2,8.4 1 0\n"
	got, err := parseCoverage([]byte(profile), "example.com/m")
	if err != nil || !got["internal/a.go"][4] || got["internal/a.go"][7] {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := parseCoverage([]byte("a.go:x"), ""); err == nil {
		t.Error("a line without positions is accepted")
	}
}
