// Package console runs the steps of a document: the commands in its console blocks, each with the
// output that follows it.
//
// If the document shows no output for a command, the output is not compared. Otherwise each line
// must have the same words in the same order, with any alignment. An age or a time matches every
// other one. Output includes stderr.
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
	// patience is the timeout of a step. interval is the time between its repetitions.
	patience = time.Minute
	interval = 250 * time.Millisecond
)

// Step is a shell command with its expected output lines. Want is empty if the document shows no
// output.
type Step struct {
	Command string
	Want    []string
}

var (
	block = regexp.MustCompile("(?ms)^```console\n(.*?)^```")
	// reading matches commands that change nothing. varying matches words that differ from run to
	// run: ages and times.
	reading = regexp.MustCompile(`^kubectl (get|events|logs|describe) `)
	varying = regexp.MustCompile(`^(([0-9]+[dhms])+|[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}Z)$`)
	// fromNamespace matches the suffix that newer versions of kubectl print after a deletion.
	fromNamespace = regexp.MustCompile(` deleted from \S+ namespace$`)
)

// Run runs the steps of a directory's README.md in order, in a copy of the directory, and shows
// each command with its output. It stops at the first step that fails or prints unexpected output.
// Before the steps, it runs prepare without showing it.
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

// Parse returns the steps of a document. It omits the deployment (make ...), which runs before.
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

// Reads reports whether the command changes nothing.
func (s Step) Reads() bool { return reading.MatchString(s.Command) }

// Run runs the step in a directory and returns its last output. If the command changes nothing, Run
// repeats it until it prints the expected output. If no output is expected, the command must
// succeed. Otherwise it can fail, for example if the step shows a rejected request.
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

// check returns an error with the expected and the actual output if they differ.
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
