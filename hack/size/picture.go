package main

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
)

const (
	module = "github.com/example/nginx-operator/"
	begin  = "<!-- `make generate` draws the imports between packages from here -->\n"
	end    = "<!-- to here -->\n"
)

// drawInto replaces the text between the markers of a file with the picture.
func drawInto(name string, packages map[string]goPackage) error {
	text, err := os.ReadFile(name) // #nosec G304 -- the caller names the file
	if err != nil {
		return err
	}
	before, rest, hasBegin := strings.Cut(string(text), begin)
	_, after, hasEnd := strings.Cut(rest, end)
	if !hasBegin || !hasEnd {
		return fmt.Errorf("%s does not have the lines %q and %q in this order", name, begin, end)
	}
	return os.WriteFile(name, []byte(before+begin+picture(packages)+end+after), 0o600) //nolint:gosec // the caller names the file
}

// picture returns the imports between packages as a Mermaid diagram. It omits a direct import if
// the package is also imported indirectly.
func picture(packages map[string]goPackage) string {
	imports := graph{}
	for name, files := range packages {
		imports[name] = map[string]bool{}
		for _, file := range files {
			for _, spec := range file.syntax.Imports {
				to, isOurs := strings.CutPrefix(strings.Trim(spec.Path.Value, `"`), module)
				if isOurs && packages[to] != nil {
					imports[name][to] = true
				}
			}
		}
	}
	reach, out := imports.closure(), "```mermaid\nflowchart LR\n"
	node := func(name string) string {
		label := strings.Replace(name, ".", "main.go", 1)
		return strings.NewReplacer("/", "_", "-", "_", ".", "_").Replace(label) + `["` + label + `"]`
	}
	for _, from := range slices.Sorted(maps.Keys(packages)) {
		for _, to := range slices.Sorted(maps.Keys(imports[from])) {
			follows := false
			for other := range imports[from] {
				follows = follows || reach[other][to]
			}
			if !follows {
				out += "  " + node(from) + " --> " + node(to) + "\n"
			}
		}
	}
	return out + "```\n"
}
