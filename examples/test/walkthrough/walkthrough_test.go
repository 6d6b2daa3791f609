package walkthrough

import (
	"os"
	"reflect"
	"testing"
)

const readme = "# Title\n\n```console\n$ make examples-deploy\n$ kubectl apply -f a\nfoo created\n```\n" +
	"Text\n$ no step\n\n```yaml\n$ no step\n```\n\n```console\n$ kubectl get foos\nNAME  AGE\nfoo   1s\n$ kubectl delete -f a\n```\n"

func TestParse(t *testing.T) {
	want := []step{
		{"kubectl apply -f a", []string{"foo created"}},
		{"kubectl get foos", []string{"NAME  AGE", "foo   1s"}},
		{"kubectl delete -f a", nil},
	}
	if got := parse(readme); !reflect.DeepEqual(got, want) {
		t.Errorf("got %q", got)
	}
}

func TestCheck(t *testing.T) {
	table, deleted, dated := "NAME HAPPY AGE\nfoo-01 true 9s", `foo "a" deleted`, "foos 2026-01-02T03:04:05Z"
	for _, test := range []struct {
		want, output string
		passes       bool
	}{
		{table, "NAME     HAPPY   AGE\nfoo-01   true    2m3s\n", true},
		{table, "NAME     HAPPY   AGE\nfoo-01   false   9s\n", false},
		{table, "NAME     HAPPY   AGE\nfoo-01   true    old\n", false},
		{table, "NAME     HAPPY   AGE\n", false},
		{table, "NAME     HAPPY   AGE\nfoo-01   true    9s\nfoo-02   true      9s\n", false},
		{deleted, `foo "a" deleted from default namespace`, true},
		{deleted, `foo "b" deleted`, false},
		{dated, "foos   2031-12-31T23:59:59Z\n", true},
	} {
		want := parse("```console\n$ kubectl\n" + test.want + "\n```\n")[0]
		if err := want.check(test.output); (err == nil) != test.passes {
			t.Errorf("%q: %v", test.output, err)
		}
	}
}

// Every README has steps, every step that only reads says what it shows, and the manifests are there.
func TestReadmes(t *testing.T) {
	for _, example := range Examples {
		directory := "../../" + example.Directory + "/"
		for _, manifest := range example.manifests {
			if _, err := os.Stat(directory + manifest); err != nil {
				t.Error(err)
			}
		}
		raw, err := os.ReadFile(directory + "README.md")
		steps := parse(string(raw))
		if err != nil || len(steps) < 4 {
			t.Errorf("%s has %d steps, %v", example.Directory, len(steps), err)
		}
		for _, step := range steps {
			if reading.MatchString(step.command) && step.want == nil {
				t.Errorf("%s: %q shows nothing", example.Directory, step.command)
			}
		}
	}
}

// A step that only reads is repeated until it prints what is wanted; others are run once; a refusal that is shown is no
// failure.
func TestRun(t *testing.T) {
	dir := t.TempDir()
	// kubectl counts its calls and prints the number.
	if err := os.WriteFile(dir+"/kubectl", []byte("#!/bin/sh\necho x >> calls\nwc -l < calls\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	for _, test := range []struct {
		step   step
		output string
		passes bool
	}{
		{step{"kubectl get foos", []string{"3"}}, "3\n", true},
		{step{"kubectl apply -f a", []string{"9"}}, "4\n", false},
		{step{"echo refused >&2; false", []string{"refused"}}, "refused\n", true},
		{step{"false", nil}, "", false},
	} {
		if output, err := test.step.run(t.Context(), dir); output != test.output || (err == nil) != test.passes {
			t.Errorf("%q: %q, %v", test.step.command, output, err)
		}
	}
}
