package main

import (
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"sigs.k8s.io/yaml"
)

// TestParts checks that each part has tests, that documentation and workflow have all parts, and
// that the recorded parts take at most an hour each and three hours together.
func TestParts(t *testing.T) {
	t.Chdir("../..")
	var workflow struct {
		Jobs map[string]struct {
			Strategy struct{ Matrix struct{ Part []string } }
		}
	}
	if err := yaml.Unmarshal([]byte(shell(t, "cat .github/workflows/nightly.yaml")), &workflow); err != nil {
		t.Fatal(err)
	}
	section := shell(t, "cat docs/development/nightly.md")
	inJobs := map[bool][]string{}
	for _, p := range parts {
		inJobs[p.weekly] = append(inJobs[p.weekly], p.name)
		if _, err := p.want(); err != nil {
			t.Error(err)
		}
		if !strings.Contains(section, "\n| `"+p.name+"` | ") {
			t.Errorf("docs/development/nightly.md does not describe part %s", p.name)
		}
	}
	for job, weekly := range map[string]bool{"nightly": false, "weekly": true} {
		if got := workflow.Jobs[job].Strategy.Matrix.Part; !slices.Equal(got, inJobs[weekly]) {
			t.Errorf("the job %s has the parts %q, want %q", job, got, inJobs[weekly])
		}
	}
	rows, err := load(rowsFile)
	minutes := 0
	for _, r := range rows {
		if slices.Contains(inJobs[false], r.Part) {
			minutes += r.Minutes
		}
		if minutes > 180 || r.Minutes > 60 && !slices.Contains(inJobs[true], r.Part) {
			t.Errorf("part %s takes %d minutes, and with the parts before it %d", r.Part, r.Minutes, minutes)
		}
	}
	if err != nil {
		t.Error(err)
	}
}

func TestDue(t *testing.T) {
	all := []part{{name: "a", listed: true}, {name: "b", listed: true}, {name: "c"}}
	rows := []row{{Part: "a", Commit: "1"}, {Part: "b", Commit: "2"}, {Part: "b", Commit: "1"}, {Part: "c", Commit: "3"}}
	for _, test := range []struct{ name, history, changed, want string }{
		{"nothing changed", "4 3 2 1", "", ""},
		{"changed before the newest row", "4 3 2 1", "1", "a"},
		{"changed since each row", "4 3 2 1", "1 2", "a b"},
		{"newest row on another branch", "4 3 1", "2", ""},
		{"no row in the history", "4 3", "", "a b"},
		{"no history", "", "", "a b"},
	} {
		changed := map[string]bool{}
		for commit := range strings.FieldsSeq(test.changed) {
			changed[commit] = true
		}
		if got := strings.Join(due(all, rows, strings.Fields(test.history), changed), " "); got != test.want {
			t.Errorf("%s: %q is due, want %q", test.name, got, test.want)
		}
	}
}

// TestRecord records a part in a repository with one package of tests, and invalidates the row.
func TestRecord(t *testing.T) {
	t.Chdir(t.TempDir())
	const commit = "; git add -A; git -c user.name=x -c user.email=x@example.com commit -qm x"
	shell(t, `git init -q; mkdir -p api test/x docs/reference dist; printf 'dist\nreport\n' > .gitignore; echo [] > `+rowsFile+`
echo "`+strings.ReplaceAll(begin+end, "`", "\\`")+`" > `+page+`
echo 'module `+strings.TrimSuffix(module, "/")+`' > go.mod
printf 'package x\nfunc TestA(t *testing.T) {}\nfunc TestB(t *testing.T) {}\nfunc TestMain(m *testing.M) {}\n' > test/x/x_test.go
printf '//go:build !y\npackage x\nfunc TestD(t *testing.T) {}\n' > test/x/without_y_test.go
printf 'x:\n\techo >> dist/runs; cp report dist/x.json\ny:\n' > Makefile`+commit)
	all := []part{{name: "x", listed: true, steps: []step{{make: "x", packages: []string{"./test/x"}, tag: "y"}, {make: "y"}}}}
	nightly := func(name, want string) {
		t.Helper()
		words := strings.Fields(name)
		if got := fmt.Sprint(command(all, words[0], words[1:])); !strings.Contains(got, want) {
			t.Errorf("nightly %s: %s, want %s", name, got, want)
		}
	}
	isDue := func(want bool) {
		t.Helper()
		rows, err := load(rowsFile)
		if got := dueNow(all, rows); err != nil || len(got) > 0 != want {
			t.Errorf("%q is due, error %v", got, err)
		}
	}
	event := func(action, test, output string) string {
		return fmt.Sprintf(`{"Action":%q,"Package":"`+module+`test/x","Test":%q,"Output":%q}`+"\n", action, test, output)
	}
	a := event("output", "TestA/sub", "    x_test.go:3: MATRIX nginx 1.30.6\n") + event("pass", "TestA/sub", "") + event("pass", "TestA", "")
	b := event("output", "TestB", "    x_test.go:9: too old\n") + event("skip", "TestB", "")
	nightly("release-check", "part x has no row")
	nightly("run x z", "no part of this run")
	isDue(true)
	for _, test := range [][2]string{
		{a + event("fail", "TestB", ""), "test/x TestB failed"},
		{a, "[test/x TestB] did not run"},
		{a + b + event("pass", "TestC", ""), "[test/x TestC] are no tests"},
		{a + event("skip", "TestB", ""), "test/x TestB was skipped without a reason"},
		{a + b[:9], "failed to decode"},
		{strings.ReplaceAll(b, "TestB", "TestA") + b, "no test passed"},
		{a + b, "<nil>"},
	} {
		shell(t, "cat > report <<'EOF'\n"+test[0]+"EOF")
		nightly("run", test[1])
	}
	rows, err := load(rowsFile)
	want := row{
		Part: "x", Commit: strings.TrimSpace(shell(t, "git rev-parse HEAD")), Minutes: 1, Versions: map[string][]string{"nginx": {"1.30.6"}},
		Tests:  map[string][]string{"x": {"test/x TestA", "test/x TestB"}, "y": {"y"}},
		Passed: 3, Skipped: map[string]string{"test/x TestB": "too old"},
	}
	if diff := cmp.Diff([]row{want}, rows, cmpopts.IgnoreFields(row{}, "Hash", "Date")); diff != "" || err != nil {
		t.Fatalf("recorded %s (%v)", diff, err)
	}
	if text := shell(t, "cat "+page); !strings.Contains(text, "\n| nginx | 1.30.6 | `x` | 3 | 1 | "+rows[0].Date[:10]+" |\n") {
		t.Errorf("the page has no version: %s", text)
	}

	shell(t, "echo not shipped > docs/text.md"+commit)
	shell(t, "rm report")
	nightly("run", "<nil>")
	nightly("release-check", "<nil>")
	isDue(false)
	shell(t, "echo package api > api/types.go")
	isDue(true)
	nightly("run", "commit these files")
	shell(t, "true"+commit)
	isDue(true)
	nightly("release-check", "part x ran on other code, that of commit "+want.Commit)
	shell(t, "git rm -q api/types.go; echo 'func TestC(t *testing.T) {}' >> test/x/x_test.go"+commit)
	isDue(false)
	nightly("release-check", "[test/x TestC] did not run")
	for name, edit := range map[string]string{"new": `s/1.30.6/1.31.0/; s/: "2/: "3/`, "old": `s/1.30.6/1.29.0/; s/: "2/: "1/`} {
		shell(t, "sed '"+edit+"' "+rowsFile+" > dist/"+name)
	}
	nightly("merge dist/new dist/old", "<nil>")
	if text := shell(t, "cat "+page); strings.Count(text, "| nginx |") != 1 || !strings.Contains(text, "| nginx | 1.31.0 |") {
		t.Errorf("the newest row is not the one that was merged: %s", text)
	}
	t.Chdir(strings.TrimSpace(shell(t, "git clone -q --depth=1 file://$PWD dist/shallow; realpath dist/shallow")))
	isDue(true)
}

// shell runs a script and returns its output.
func shell(t *testing.T, script string) string {
	t.Helper()
	out, err := exec.Command("bash", "-euc", script).CombinedOutput() //nolint:gosec // constants of this file
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return string(out)
}
