package main

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"
)

const (
	rowsFile = "docs/reference/nightly.json"
	page     = "docs/support.md"
	begin    = "<!-- `make generate` writes the tested versions of docs/reference/nightly.json from here -->\n"
	end      = "<!-- to here -->\n"
)

// row is the record of a part that ran without a failure.
type row struct {
	Part string `json:"part"`
	// Commit is what was tested. Hash is that of its shipped files.
	Commit  string `json:"commit"`
	Hash    string `json:"hash"`
	Date    string `json:"date"`
	Minutes int    `json:"minutes"`
	// Versions are those of other software that tests logged.
	Versions map[string][]string `json:"versions,omitempty"`
	// Tests are those of each step. Passed counts subtests too. Skipped has the reasons.
	Tests   map[string][]string `json:"tests"`
	Passed  int                 `json:"passed"`
	Skipped map[string]string   `json:"skipped,omitempty"`
}

// shippedFiles are git's patterns of the files that reach users, or decide how these are built.
var shippedFiles = [][]string{
	{".", ":!.github", ":!README.md", ":!CHANGELOG.md", ":!hack", ":!test", ":!docs/reference", ":(exclude,glob)docs/**/*.md"},
	{"docs/reference", "hack/tools", ":!" + rowsFile},
}

// now returns the row that the part has for the current commit, before it runs. It is an error if
// files are not committed, except for those that a recorded row changes.
func (p part) now() (row, error) {
	changes, err := git("status", "--porcelain", "--", ".", ":!"+rowsFile, ":!"+page)
	if changes != "" {
		err = fmt.Errorf("commit these files, because a row belongs to a commit:\n%s", changes)
	}
	hash := sha256.New()
	for _, patterns := range shippedFiles {
		files, errFiles := git(append([]string{"ls-files", "--stage", "--"}, patterns...)...)
		_, _ = hash.Write([]byte(files))
		err = errors.Join(err, errFiles)
	}
	commit, errCommit := git("rev-parse", "HEAD")
	tests, errTests := p.want()
	return row{Part: p.name, Commit: strings.TrimSpace(commit), Hash: fmt.Sprintf("%x", hash.Sum(nil)), Tests: tests},
		errors.Join(err, errCommit, errTests)
}

// in returns an error unless rows have one of the same part, shipped files, and tests.
func (r row) in(rows []row) error {
	i := slices.IndexFunc(rows, func(old row) bool { return old.Part == r.Part })
	if i < 0 {
		return fmt.Errorf("part %s has no row in %s", r.Part, rowsFile)
	}
	if rows[i].Hash != r.Hash {
		return fmt.Errorf("part %s ran on other code, that of commit %s", r.Part, rows[i].Commit)
	}
	var errs []error
	for step, tests := range r.Tests {
		if want, ran := sets.New(tests...), sets.New(rows[i].Tests[step]...); !want.Equal(ran) {
			errs = append(errs, fmt.Errorf("part %s, make %s: %v did not run, and %v are no tests of it",
				r.Part, step, sets.List(want.Difference(ran)), sets.List(ran.Difference(want))))
		}
	}
	for test, reason := range rows[i].Skipped {
		if reason == "" {
			errs = append(errs, fmt.Errorf("part %s: %s was skipped without a reason", r.Part, test))
		}
	}
	return errors.Join(errs...)
}

func load(name string) (rows []row, err error) {
	raw, err := os.ReadFile(name) //nolint:gosec // the caller names a copy
	if err == nil {
		err = json.Unmarshal(raw, &rows)
	}
	if err != nil {
		return nil, fmt.Errorf("failed to read %s: %w", name, err)
	}
	return rows, nil
}

// save writes the newest row of each part, and the page.
func save(rows []row) error {
	newest := map[string]row{}
	for _, r := range rows {
		if r.Date > newest[r.Part].Date {
			newest[r.Part] = r
		}
	}
	rows = []row{}
	for _, part := range slices.Sorted(maps.Keys(newest)) {
		rows = append(rows, newest[part])
	}
	raw, err := json.MarshalIndent(rows, "", "  ")
	if err != nil {
		return err
	}
	return errors.Join(os.WriteFile(rowsFile, append(raw, '\n'), 0o600), writePage(rows))
}

// writePage replaces the table of the tested versions.
func writePage(rows []row) error {
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	before, rest, hasBegin := strings.Cut(string(text), begin)
	_, after, hasEnd := strings.Cut(rest, end)
	if !hasBegin || !hasEnd {
		return fmt.Errorf("%s does not have the lines %q and %q in this order", page, begin, end)
	}
	table := "\n| component | versions | part | passed | skipped | date |\n|---|---|---|---|---|---|\n"
	for _, r := range rows {
		for _, component := range slices.Sorted(maps.Keys(r.Versions)) {
			table += fmt.Sprintf("| %s | %s | `%s` | %d | %d | %s |\n",
				component, strings.Join(r.Versions[component], ", "), r.Part, r.Passed, len(r.Skipped), r.Date[:len("2006-01-02")])
		}
	}
	return os.WriteFile(page, []byte(before+begin+table+"\n"+end+after), 0o600) //nolint:gosec // a constant name
}
