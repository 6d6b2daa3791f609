// Package console runs the steps of a document: the commands in its console blocks, each with the
// output that follows it. Output includes stderr. If the document shows no output for a command,
// the output is not compared.
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

	"github.com/example/nginx-operator/docs"
	"github.com/example/nginx-operator/test/harness"
)

const (
	// patience is the timeout of a step. interval is the time between its repetitions.
	patience = time.Minute
	interval = 250 * time.Millisecond
)

// reading matches commands that change nothing.
var reading = regexp.MustCompile(`^kubectl (get|events|logs|describe) `)

// Reads reports whether the step changes nothing.
func Reads(step *docs.Step) bool { return reading.MatchString(step.Script) }

// Steps returns the steps of the README.md in a directory. It omits the deployment (make ...),
// which runs before.
func Steps(directory string) ([]docs.Step, error) {
	readme, err := os.ReadFile(filepath.Join(directory, "README.md"))
	if err != nil {
		return nil, fmt.Errorf("failed to read the steps: %w", err)
	}
	steps, err := docs.Steps(string(readme))
	return slices.DeleteFunc(steps, func(step docs.Step) bool { return strings.HasPrefix(step.Script, "make ") }), err
}

// Run runs the steps of a directory in order, in a copy of the directory, and shows each command
// with its output. It stops at the first step that fails or prints unexpected output. Before the
// steps, it runs the commands of prepare without showing them.
func Run(ctx context.Context, directory, prepare string, show func(command, output string)) error {
	steps, err := Steps(directory)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "console-")
	if err != nil {
		return fmt.Errorf("failed to make a directory: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := os.CopyFS(dir, os.DirFS(directory)); err != nil {
		return fmt.Errorf("failed to copy the directory: %w", err)
	}
	if _, err := run(ctx, &docs.Step{Script: prepare}, dir); err != nil {
		return fmt.Errorf("failed to prepare: %w", err)
	}
	for i := range steps {
		output, err := run(ctx, &steps[i], dir)
		show(steps[i].Script, output)
		if err != nil {
			return err
		}
	}
	return nil
}

// run runs a step in a directory and returns its last output. If the command changes nothing, run
// repeats it until it prints the expected output. If no output is expected, the command must
// succeed. Otherwise it can fail, for example if the step shows a rejected request.
func run(ctx context.Context, step *docs.Step, dir string) (output string, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	once := func(ctx context.Context) error {
		shell := exec.CommandContext(ctx, "bash", "-uo", "pipefail", "-c", step.Script)
		shell.Dir = dir
		raw, err := shell.CombinedOutput()
		output = string(raw)
		if step.Answer != "" {
			err = step.Check(output)
		}
		if err != nil {
			return fmt.Errorf("%s: %w\n%s", step.Script, err, output)
		}
		return nil
	}
	if Reads(step) {
		return output, harness.Eventually(ctx, interval, once)
	}
	return output, once(ctx)
}
