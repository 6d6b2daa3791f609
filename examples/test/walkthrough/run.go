package walkthrough

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// Example is what can be walked through.
type Example struct {
	// Directory is its directory under examples/, Kind that of its objects.
	Directory, Kind string
	// Manifests are the paths in its directory of what its steps create, which an aborted run may have left.
	Manifests []string
}

// Examples are all examples, in the order in which they are shown.
var Examples = []Example{
	{Directory: "foo", Kind: "Foo", Manifests: []string{"sample", "jack.yaml"}},
	{Directory: "activity", Kind: "Activity", Manifests: []string{"sample"}},
	{Directory: "myapp", Kind: "MyApp", Manifests: []string{"sample"}},
	{Directory: "sidecarset", Kind: "SidecarSet", Manifests: []string{"sample"}},
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
	for _, manifest := range example.Manifests {
		if err := clean(ctx, dir, "kubectl delete --ignore-not-found --grace-period=1 -f "+manifest); err != nil {
			return err
		}
	}
	if err := clean(ctx, dir, "kubectl delete events --field-selector=involvedObject.kind="+example.Kind); err != nil {
		return err
	}
	for _, step := range Parse(string(readme)) {
		output, err := step.run(ctx, dir)
		show(step.Command, output)
		if err != nil {
			return err
		}
	}
	return nil
}

func clean(ctx context.Context, dir, command string) error {
	if _, err := (Step{Command: command}).run(ctx, dir); err != nil {
		return fmt.Errorf("failed to remove what an earlier run left: %w", err)
	}
	return nil
}

// run runs the step, again and again where it changes nothing, until it prints what is wanted, and returns its last output.
// Where no output is wanted it has to succeed; a step that shows a refusal does not.
func (s Step) run(ctx context.Context, dir string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		shell := exec.CommandContext(ctx, "bash", "-uo", "pipefail", "-c", s.Command)
		shell.Dir = dir
		output, err := shell.CombinedOutput()
		switch {
		case s.Want != nil:
			err = s.Check(string(output))
		case err != nil:
			err = fmt.Errorf("%s: %w\n%s", s.Command, err, output)
		}
		if err == nil || !s.Repeatable() {
			return string(output), err
		}
		select {
		case <-ctx.Done():
			return string(output), err
		case <-time.After(interval):
		}
	}
}
