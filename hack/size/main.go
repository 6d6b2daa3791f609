// Command size measures the product's code: hand-written Go code except tests. It prints a table of
// packages and fails if a file, a package, or a cycle of files exceeds its limit. `make verify`
// runs it. With -picture FILE, it draws the imports between packages into FILE.
package main

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
)

// Limits for the lines of a file, the lines of a package, and the files in a dependency cycle.
const (
	fileLimit    = 300
	packageLimit = 2500
	cycleLimit   = 3
)

// exceptions maps files, packages, and cycles ("cycle of PACKAGE") above the limit to their current
// value, which they must not exceed. Remove an exception once the code is below the limit.
var exceptions = map[string]int{}

// roots are the files and directories that contain the product's code.
var roots = []string{"main.go", "api", "assets", "controllers", "internal", "cmd"}

func main() {
	picture := flag.String("picture", "", "draw the imports between packages into this `file`, between its markers")
	flag.Parse()
	if err := run(*picture); err != nil {
		fmt.Fprintln(os.Stderr, "size:", err)
		os.Exit(1)
	}
}

func run(picture string) error {
	packages, err := readPackages(os.DirFS("."), roots)
	if err != nil {
		return err
	}
	if picture != "" {
		return drawInto(picture, packages)
	}
	fmt.Print(table(packages))
	return check(packages, exceptions)
}

// table returns a line for each package, then a line for each root. The columns are lines, files,
// and the files in the largest cycle.
func table(packages map[string]goPackage) string {
	out, rows := fmt.Sprintf("%-34s %6s %6s %6s\n", "package", "lines", "files", "cycle"), map[string][2]int{}
	for _, name := range slices.Sorted(maps.Keys(packages)) {
		p := packages[name]
		out += fmt.Sprintf("%-34s %6d %6d %6d\n", name, p.lines(), len(p), len(p.cycle()))
		root, _, _ := strings.Cut(strings.Replace(name, ".", "main.go", 1), "/")
		for _, row := range []string{root, "total"} {
			rows[row] = [2]int{rows[row][0] + p.lines(), rows[row][1] + len(p)}
		}
	}
	for _, root := range append(roots, "total") {
		out += fmt.Sprintf("%-34s %6d %6d\n", root, rows[root][0], rows[root][1])
	}
	return out
}

// check returns an error for each value above its limit, or above its exception.
func check(packages map[string]goPackage, exceptions map[string]int) error {
	var errs []error
	require := func(name string, value, limit int, unit, detail string) {
		if limit = max(limit, exceptions[name]); value > limit {
			errs = append(errs, fmt.Errorf("%s has %d %s, more than %d%s", name, value, unit, limit, detail))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(packages)) {
		p := packages[name]
		require(name, p.lines(), packageLimit, "lines", "")
		for _, file := range slices.Sorted(maps.Keys(p)) {
			require(path.Join(name, file), p[file].lines, fileLimit, "lines", "")
		}
		cycle := p.cycle()
		require("cycle of "+name, len(cycle), cycleLimit, "files", ": "+strings.Join(cycle, ", "))
	}
	return errors.Join(errs...)
}
