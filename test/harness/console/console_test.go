package console

import (
	"os"
	"testing"

	"github.com/example/nginx-operator/docs"
)

// TestRun checks that a step that changes nothing is repeated until its output matches, that other
// steps run once, and that a command that fails with the expected output is no failure.
func TestRun(t *testing.T) {
	dir := t.TempDir()
	// kubectl counts its calls and prints the number.
	if err := os.WriteFile(dir+"/kubectl", []byte("#!/bin/sh\necho x >> calls\nwc -l < calls\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	for _, test := range []struct {
		command, answer string
		passes          bool
	}{
		{"kubectl get foos", "3", true},
		{"kubectl apply -f a", "9", false},
		{"kubectl apply -f a", "5", true},
		{"echo refused >&2; false", "refused", true},
		{"false", "", false},
	} {
		if output, err := run(t.Context(), &docs.Step{Script: test.command, Answer: test.answer}, dir); (err == nil) != test.passes {
			t.Errorf("%q: %q, %v", test.command, output, err)
		}
	}
}
