package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
)

// goPackage is the hand-written code of a directory, by file name. A graph maps each node to its
// dependencies.
type (
	goPackage map[string]*goFile
	goFile    struct {
		lines  int
		syntax *ast.File
	}
	graph map[string]map[string]bool
)

// readPackages parses the code below the roots, except tests and generated files.
func readPackages(tree fs.FS, roots []string) (map[string]goPackage, error) {
	packages := map[string]goPackage{}
	for _, root := range roots {
		err := fs.WalkDir(tree, root, func(name string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") {
				return err
			}
			text, err := fs.ReadFile(tree, name)
			if err != nil {
				return err
			}
			syntax, err := parser.ParseFile(token.NewFileSet(), name, text, parser.ParseComments)
			if err != nil || ast.IsGenerated(syntax) {
				return err
			}
			dir := path.Dir(name)
			if packages[dir] == nil {
				packages[dir] = goPackage{}
			}
			packages[dir][path.Base(name)] = &goFile{bytes.Count(text, []byte("\n")), syntax}
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("cannot measure %s: %w", root, err)
		}
	}
	return packages, nil
}

func (p goPackage) lines() (sum int) {
	for _, file := range p {
		sum += file.lines
	}
	return sum
}

// dependencies returns the files of which each file uses a function, type, variable, or constant.
// It ignores calls of methods. The receiver of a method is not a dependency: the methods of one
// type may be in several files.
func (p goPackage) dependencies() graph {
	declaredIn, out := map[string]string{}, graph{}
	for name, file := range p {
		for declared := range file.syntax.Scope.Objects { //nolint:staticcheck // types would take a compiled copy of each import
			declaredIn[declared] = name
		}
	}
	for name, file := range p {
		receivers := map[*ast.Ident]bool{}
		for _, declaration := range file.syntax.Decls {
			if function, isFunction := declaration.(*ast.FuncDecl); isFunction && function.Recv != nil {
				ast.Inspect(function.Recv, func(node ast.Node) bool {
					if ident, isIdent := node.(*ast.Ident); isIdent {
						receivers[ident] = true
					}
					return true
				})
			}
		}
		out[name] = map[string]bool{}
		for _, used := range file.syntax.Unresolved { //nolint:staticcheck // as above
			if to := declaredIn[used.Name]; to != "" && !receivers[used] {
				out[name][to] = true
			}
		}
	}
	return out
}

// cycle returns the largest set of files that all depend on each other, or nil if there is no
// cycle.
func (p goPackage) cycle() (largest []string) {
	reach := p.dependencies().closure()
	for _, name := range slices.Sorted(maps.Keys(p)) {
		var cycle []string
		for _, other := range slices.Sorted(maps.Keys(p)) {
			if reach[name][other] && reach[other][name] {
				cycle = append(cycle, other)
			}
		}
		if len(cycle) > len(largest) {
			largest = cycle
		}
	}
	return largest
}

// closure returns the direct and indirect dependencies of each node.
func (g graph) closure() graph {
	out := graph{}
	for from := range g {
		out[from] = maps.Clone(g[from])
	}
	for through := range g {
		for from := range g {
			if out[from][through] {
				maps.Copy(out[from], out[through])
			}
		}
	}
	return out
}
