// Package console does the steps of a document: the commands in its console blocks, each with the output that follows it.
//
// Output that is not shown is not compared. Where it is, each line has to have the same words in the same order, however they are
// aligned; an age or a time agrees with every other one. Errors count as output.
package console

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

	"github.com/example/nginx-operator/test/harness"
)

const (
	// patience bounds how long a step is repeated, interval is the time in between.
	patience = time.Minute
	interval = 250 * time.Millisecond
)

// Step is a command for a shell, and the lines that it is to print, none where they are not shown.
type Step struct {
	Command string
	Want    []string
}

var (
	block = regexp.MustCompile("(?ms)^```console\n(.*?)^```")
	// reading matches the commands that change nothing, varying the words that differ from run to run: ages and times.
	reading = regexp.MustCompile(`^kubectl (get|events|logs|describe) `)
	varying = regexp.MustCompile(`^(([0-9]+[dhms])+|[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}Z)$`)
	// fromNamespace matches what newer versions of kubectl add to what they have deleted.
	fromNamespace = regexp.MustCompile(` deleted from \S+ namespace$`)
)

// Run does the steps of a directory's README.md, one after the other, in a copy of the directory, and shows each with its output. It
// stops at the first one that fails or prints something else. Before them, it prepares the cluster with a step that it does not show.
func Run(ctx context.Context, directory string, prepare Step, show func(command, output string)) error {
	dir, err := os.MkdirTemp("", "console-")
	if err != nil {
		return fmt.Errorf("failed to make a directory: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := os.CopyFS(dir, os.DirFS(directory)); err != nil {
		return fmt.Errorf("failed to copy the directory: %w", err)
	}
	readme, err := os.ReadFile(filepath.Join(dir, "README.md"))
	if err != nil {
		return fmt.Errorf("failed to read the steps: %w", err)
	}
	if _, err := prepare.Run(ctx, dir); err != nil {
		return fmt.Errorf("failed to prepare: %w", err)
	}
	for _, step := range Parse(string(readme)) {
		output, err := step.Run(ctx, dir)
		show(step.Command, output)
		if err != nil {
			return err
		}
	}
	return nil
}

// Parse returns the steps of a document. The deployment (make ...) is none: it has been done before.
func Parse(document string) (out []Step) {
	for _, found := range block.FindAllStringSubmatch(document, -1) {
		for _, text := range strings.Split("\n"+found[1], "\n$ ")[1:] {
			lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
			if !strings.HasPrefix(lines[0], "make ") {
				out = append(out, Step{Command: lines[0], Want: lines[1:]})
			}
		}
	}
	return out
}

// Reads reports whether the step changes nothing.
func (s Step) Reads() bool { return reading.MatchString(s.Command) }

// Run runs the step in a directory, again and again where it changes nothing, until it prints what is wanted, and returns its last
// output. Where no output is wanted it has to succeed; a step that shows a refusal does not.
func (s Step) Run(ctx context.Context, dir string) (output string, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	once := func(ctx context.Context) error {
		shell := exec.CommandContext(ctx, "bash", "-uo", "pipefail", "-c", s.Command)
		shell.Dir = dir
		raw, err := shell.CombinedOutput()
		output = string(raw)
		switch {
		case len(s.Want) > 0:
			return s.check(output)
		case err != nil:
			return fmt.Errorf("%s: %w\n%s", s.Command, err, output)
		}
		return nil
	}
	if s.Reads() {
		err = harness.Eventually(ctx, interval, once)
	} else {
		err = once(ctx)
	}
	return output, err
}

// check returns an error that shows both where an output is not what the step wants.
func (s Step) check(output string) error {
	got := strings.Split(strings.TrimRight(output, "\n"), "\n")
	if slices.EqualFunc(s.Want, got, sameLine) {
		return nil
	}
	return fmt.Errorf("%s\nwant:\n%s\ngot:\n%s", s.Command, strings.Join(s.Want, "\n"), strings.Join(got, "\n"))
}

func sameLine(want, got string) bool {
	words := func(line string) []string { return strings.Fields(fromNamespace.ReplaceAllString(line, " deleted")) }
	return slices.EqualFunc(words(want), words(got), func(a, b string) bool {
		return a == b || varying.MatchString(a) && varying.MatchString(b)
	})
}
