// Command reasons prints the reference of the reasons of conditions and status.blockedBy. It reads
// the comments of the constants: "ReasonX (Condition=Status): meaning. Remedy: remedy."
package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

const source = "api/v1alpha2/conditions.go"

const head = `# Reasons

Generated from ` + "`" + source + "`" + `. [Troubleshooting](../troubleshooting.md) explains each reason. The message
next to a reason names the affected object.
`

func main() {
	page, err := render()
	if err != nil {
		fmt.Fprintln(os.Stderr, "reasons:", err)
		os.Exit(1)
	}
	fmt.Print(page)
}

// render returns the page, with a table for each group of constants.
func render() (string, error) {
	file, err := parser.ParseFile(token.NewFileSet(), source, nil, parser.ParseComments)
	if err != nil {
		return "", fmt.Errorf("failed to parse the constants: %w", err)
	}
	addresses, err := sections()
	if err != nil {
		return "", err
	}
	page := head
	for _, declaration := range file.Decls {
		group, ok := declaration.(*ast.GenDecl)
		if !ok || group.Tok != token.CONST || !strings.HasPrefix(group.Specs[0].(*ast.ValueSpec).Names[0].Name, "Reason") {
			continue
		}
		rows := ""
		for _, spec := range group.Specs {
			row, err := rowOf(spec.(*ast.ValueSpec), addresses)
			if err != nil {
				return "", err
			}
			rows += row
		}
		page += fmt.Sprintf("\n%s\n\n| reason | where | meaning | remedy |\n|---|---|---|---|\n%s", oneLine(group.Doc.Text()), rows)
	}
	return page, nil
}

// heading is the heading of the section of a reason.
var heading = regexp.MustCompile(`(?m)^### ([A-Z][A-Za-z]+)$`)

// sections returns the address of the section of each reason, relative to docs/reference.
func sections() (map[string]string, error) {
	pages, err := filepath.Glob("docs/troubleshooting/*.md")
	if err != nil {
		return nil, fmt.Errorf("failed to list the pages: %w", err)
	}
	out := map[string]string{}
	for _, page := range append(pages, "docs/troubleshooting.md") {
		text, err := os.ReadFile(page) //nolint:gosec // pages of this repository
		if err != nil {
			return nil, fmt.Errorf("failed to read a page: %w", err)
		}
		for _, section := range heading.FindAllStringSubmatch(string(text), -1) {
			out[section[1]] = "../" + strings.TrimPrefix(page, "docs/") + "#" + strings.ToLower(section[1])
		}
	}
	return out, nil
}

// rowOf returns the table row of a constant. addresses has the section of each reason.
func rowOf(constant *ast.ValueSpec, addresses map[string]string) (string, error) {
	name := constant.Names[0].Name
	comment, ok := strings.CutPrefix(oneLine(constant.Doc.Text()), name)
	where, meaning, found := strings.Cut(comment, ": ")
	reason, err := strconv.Unquote(constant.Values[0].(*ast.BasicLit).Value)
	if !ok || !found || err != nil {
		return "", fmt.Errorf("the comment of %s does not begin with its name and a colon", name)
	}
	address, ok := addresses[reason]
	if !ok {
		return "", fmt.Errorf("no page in docs/troubleshooting has a section %s", reason)
	}
	meaning, remedy, _ := strings.Cut(meaning, " Remedy: ")
	return fmt.Sprintf("| [`%s`](%s) | %s | %s | %s |\n",
		reason, address, strings.Trim(where, " ()"), meaning, remedy), nil
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
