// Package walkthrough does the steps of an example's README, which are those of its source document, so that the demo and the tests on a
// cluster do exactly what the README says and see what it shows.
//
// A step is a command in a console block, with the output that follows it. Output that is not shown is not compared. Where it
// is, each line has to have the same words in the same order, however they are aligned; an age or a time agrees with every
// other one. Errors count as output.
package walkthrough

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Example is what can be walked through: its directory under examples/, the kind of its objects, and the paths in its directory of what
// its steps create.
type Example struct {
	Directory, Kind string
	manifests       []string
}

// Examples are all examples, in the order in which they are shown.
var Examples = []Example{
	{"foo", "Foo", []string{"sample", "jack.yaml"}},
	{"activity", "Activity", []string{"sample"}},
	{"myapp", "MyApp", []string{"sample"}},
	{"sidecarset", "SidecarSet", []string{"sample"}},
}

const (
	// patience bounds how long a step is repeated, interval is the time in between.
	patience = time.Minute
	interval = 250 * time.Millisecond
)

// Run does the steps of one example's README against the cluster that kubectl finds, one after the other, in a copy of the
// example's directory, and shows each with its output. It stops at the first one that fails or prints something else. What an
// earlier run left is removed first, its Events included: they are found by name.
func Run(ctx context.Context, repository string, example Example, show func(command, output string)) error {
	dir, err := os.MkdirTemp("", "walkthrough-")
	if err != nil {
		return fmt.Errorf("failed to make a directory: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(repository, "examples", example.Directory))); err != nil {
		return fmt.Errorf("failed to copy the example: %w", err)
	}
	readme, err := os.ReadFile(filepath.Join(dir, "README.md"))
	if err != nil {
		return fmt.Errorf("failed to read the steps: %w", err)
	}
	clean := "kubectl delete --ignore-not-found --grace-period=1 -f " + strings.Join(example.manifests, " -f ") +
		" && kubectl delete events --field-selector=involvedObject.kind=" + example.Kind
	if _, err := (step{command: clean}).run(ctx, dir); err != nil {
		return fmt.Errorf("failed to remove what an earlier run left: %w", err)
	}
	for _, step := range parse(string(readme)) {
		output, err := step.run(ctx, dir)
		show(step.command, output)
		if err != nil {
			return err
		}
	}
	return nil
}

// step is a command for a shell, and the lines that it is to print, nil where they are not shown.
type step struct {
	command string
	want    []string
}

// parse returns the steps of a README. The deployment (make ...), whose output is not shown, is none: it has been done before.
func parse(readme string) []step {
	var out []step
	inside := false
	for line := range strings.Lines(readme) {
		line = strings.TrimRight(line, "\n")
		command, isCommand := strings.CutPrefix(line, "$ ")
		switch {
		case strings.HasPrefix(line, "```"):
			inside = line == "```console"
		case !inside || strings.HasPrefix(command, "make "):
		case isCommand:
			out = append(out, step{command: command})
		case len(out) > 0:
			out[len(out)-1].want = append(out[len(out)-1].want, line)
		}
	}
	return out
}

// reading matches the commands that change nothing, varying the words that differ from run to run: ages and times. fromNamespace matches
// what newer versions of kubectl add to what they have deleted.
var (
	reading       = regexp.MustCompile(`^kubectl (get|events|logs|describe) `)
	varying       = regexp.MustCompile(`^(([0-9]+[dhms])+|[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}Z)$`)
	fromNamespace = regexp.MustCompile(` deleted from \S+ namespace$`)
)

// run runs the step, again and again where it changes nothing, until it prints what is wanted, and returns its last output.
// Where no output is wanted it has to succeed; a step that shows a refusal does not.
func (s step) run(ctx context.Context, dir string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		shell := exec.CommandContext(ctx, "bash", "-uo", "pipefail", "-c", s.command)
		shell.Dir = dir
		output, err := shell.CombinedOutput()
		if s.want != nil {
			err = s.check(string(output))
		} else if err != nil {
			err = fmt.Errorf("%s: %w\n%s", s.command, err, output)
		}
		if err == nil || !reading.MatchString(s.command) {
			return string(output), err
		}
		select {
		case <-ctx.Done():
			return string(output), err
		case <-time.After(interval):
		}
	}
}

// check returns an error that shows both where an output is not what the step wants.
func (s step) check(output string) error {
	got := strings.Split(strings.TrimRight(output, "\n"), "\n")
	if slices.EqualFunc(s.want, got, sameLine) {
		return nil
	}
	return fmt.Errorf("%s\nwant:\n%s\ngot:\n%s", s.command, strings.Join(s.want, "\n"), strings.Join(got, "\n"))
}

func sameLine(want, got string) bool {
	words := func(line string) []string { return strings.Fields(fromNamespace.ReplaceAllString(line, " deleted")) }
	return slices.EqualFunc(words(want), words(got), func(a, b string) bool {
		return a == b || varying.MatchString(a) && varying.MatchString(b)
	})
}
