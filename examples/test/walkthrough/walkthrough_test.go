package walkthrough

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const readme = "# Title\n\n```console\n$ make examples-deploy\nsome output\n$ kubectl apply -f a\nfoo created\n```\n" +
	"Text\n$ no step\n\n```yaml\n$ no step\n```\n\n```console\n$ kubectl get foos\nNAME  AGE\nfoo   1s\n$ kubectl delete -f a\n```\n"

func TestParse(t *testing.T) {
	want := []Step{
		{Command: "kubectl apply -f a", Want: []string{"foo created"}},
		{Command: "kubectl get foos", Want: []string{"NAME  AGE", "foo   1s"}},
		{Command: "kubectl delete -f a"},
	}
	got := Parse(readme)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for i, repeatable := range []bool{false, true, false} {
		if got[i].Repeatable() != repeatable {
			t.Errorf("%s: repeatable %t", got[i].Command, got[i].Repeatable())
		}
	}
}

func TestCheck(t *testing.T) {
	table := Step{Want: []string{"NAME HAPPY AGE", "foo-01 true 9s"}}
	deleted := Step{Want: []string{`foo "a" deleted`}}
	for _, test := range []struct {
		step   Step
		output string
		want   bool
	}{
		{table, "NAME     HAPPY   AGE\nfoo-01   true    2m3s\n", true},
		{table, "NAME     HAPPY   AGE\nfoo-01   false   9s\n", false},
		{table, "NAME     HAPPY   AGE\nfoo-01   true    old\n", false},
		{table, "NAME     HAPPY   AGE\n", false},
		{table, "NAME     HAPPY   AGE\nfoo-01   true    9s\nfoo-02   true      9s\n", false},
		{Step{}, "anything", true},
		{deleted, `foo "a" deleted from default namespace`, true},
		{deleted, `foo "b" deleted`, false},
		{Step{Want: []string{"foos 2026-01-02T03:04:05Z"}}, "foos   2031-12-31T23:59:59Z\n", true},
	} {
		if err := test.step.Check(test.output); (err == nil) != test.want {
			t.Errorf("%q: %v", test.output, err)
		}
	}
}

// Every README has steps, every step that only reads says what it shows, and the manifests are there.
func TestReadmes(t *testing.T) {
	for _, example := range Examples {
		raw, err := os.ReadFile("../../" + example.Directory + "/README.md")
		if err != nil {
			t.Fatal(err)
		}
		for _, manifest := range example.Manifests {
			if _, err := os.Stat("../../" + example.Directory + "/" + manifest); err != nil {
				t.Error(err)
			}
		}
		steps := Parse(string(raw))
		if len(steps) < 4 {
			t.Errorf("%s has %d steps", example.Directory, len(steps))
		}
		for _, step := range steps {
			if step.Repeatable() && step.Want == nil {
				t.Errorf("%s: %q shows nothing", example.Directory, step.Command)
			}
		}
	}
}

// A step that only reads is repeated until it prints what is wanted; others are run once; a refusal that is shown is no
// failure.
func TestRun(t *testing.T) {
	dir := t.TempDir()
	// kubectl counts its calls and prints the number.
	script := "#!/bin/sh\necho x >> calls\nwc -l < calls\n"
	if err := os.WriteFile(dir+"/kubectl", []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	if output, err := (Step{Command: "kubectl get foos", Want: []string{"3"}}).run(t.Context(), dir); err != nil || output != "3\n" {
		t.Errorf("%q, %v", output, err)
	}
	if output, err := (Step{Command: "kubectl apply -f a", Want: []string{"9"}}).run(t.Context(), dir); err == nil || output != "4\n" {
		t.Errorf("%q, %v", output, err)
	}
	if _, err := (Step{Command: "echo refused >&2; false", Want: []string{"refused"}}).run(t.Context(), dir); err != nil {
		t.Error(err)
	}
	if _, err := (Step{Command: "false"}).run(t.Context(), dir); err == nil {
		t.Error("a failure passed")
	}
}
