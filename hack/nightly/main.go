// Command nightly runs the tests that are too long for `make check`, and records each part that
// passed as a row of docs/reference/nightly.json. A row counts until a shipped file changes.
//
//	nightly run [PART...]      run the parts of `make nightly` that have no row that counts
//	nightly weekly [PART...]   the same for the parts of `make weekly`
//	nightly release-check      fail unless each part of `make nightly` has a row that counts
//	nightly due                print the parts that have a share in `make check` now, or "none"
//	nightly merge [FILE...]    add the newer rows of copies of nightly.json, and write the table of
//	                           docs/support.md
package main

import (
	"cmp"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// list has the paths whose changes make the listed parts due. It is a list of git's patterns.
//
//go:embed list.txt
var list string

func main() {
	flag.Parse()
	if err := command(parts, flag.Arg(0), flag.Args()[min(1, flag.NArg()):]); err != nil {
		fmt.Fprintln(os.Stderr, "nightly:", err)
		os.Exit(1)
	}
}

func command(all []part, name string, args []string) error {
	rows, err := load(rowsFile)
	if err != nil {
		return err
	}
	var errs []error
	switch name {
	case "run", "weekly", "release-check":
		selected := slices.DeleteFunc(slices.Clone(all), func(p part) bool {
			return p.weekly != (name == "weekly") || len(args) > 0 && !slices.Contains(args, p.name)
		})
		if len(selected) < len(args) {
			return fmt.Errorf("%q has a name that is no part of this run", args)
		}
		for _, p := range selected {
			errs = append(errs, p.record(name == "release-check"))
		}
	case "due":
		fmt.Println(cmp.Or(strings.Join(dueNow(all, rows), " "), "none"))
	case "merge":
		for _, file := range args {
			more, err := load(file)
			if err != nil {
				return err
			}
			rows = append(rows, more...)
		}
		return save(rows)
	default:
		return errors.New("usage: nightly run|weekly [PART...], release-check, due, or merge [FILE...]")
	}
	return errors.Join(errs...)
}

// dueNow returns the parts that are due for the working tree. Without a history, each one is.
func dueNow(all []part, rows []row) []string {
	log, err := git("rev-list", "HEAD")
	history, changed, paths := strings.Fields(log), map[string]bool{}, append([]string{"--"}, strings.Fields(list)...)
	added, errAdded := git(append([]string{"ls-files", "--others", "--exclude-standard"}, paths...)...)
	err = errors.Join(err, errAdded)
	for _, r := range rows {
		if slices.Contains(history, r.Commit) {
			different, errDiff := git(append([]string{"diff", "--name-only", r.Commit}, paths...)...)
			changed[r.Commit], err = different+added != "", errors.Join(err, errDiff)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "nightly: each part is due:", err)
		history = nil
	}
	return due(all, rows, history, changed)
}

// due returns the listed parts that have no row of a commit in the history, and those for which the
// list has changed since the newest such commit. The history starts with the newest commit.
func due(all []part, rows []row, history []string, changed map[string]bool) (out []string) {
	for _, p := range all {
		i := slices.IndexFunc(history, func(commit string) bool {
			return slices.ContainsFunc(rows, func(r row) bool { return r.Part == p.name && r.Commit == commit })
		})
		if p.listed && (i < 0 || changed[history[i]]) {
			out = append(out, p.name)
		}
	}
	return out
}

func git(args ...string) (string, error) { return output("git", args...) }

func output(name string, args ...string) (string, error) {
	out, err := exec.Command(name, args...).Output() //nolint:gosec // arguments of this program
	if err != nil {
		return "", fmt.Errorf("%s %s: %w", name, args[0], err)
	}
	return string(out), nil
}
