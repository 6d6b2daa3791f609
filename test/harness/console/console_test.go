package console

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

const readme = "# Title\n\n```console\n$ make examples-deploy\n$ kubectl apply -f a\nfoo created\n```\n" +
	"Text\n$ no step\n\n```yaml\n$ no step\n```\n\n```console\n$ kubectl get foos\nNAME  AGE\nfoo   1s\n$ kubectl delete -f a\n```\n"

func TestParse(t *testing.T) {
	want := []Step{
		{"kubectl apply -f a", []string{"foo created"}},
		{"kubectl get foos", []string{"NAME  AGE", "foo   1s"}},
		{"kubectl delete -f a", nil},
	}
	if diff := cmp.Diff(want, Parse(readme), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestRun checks that the output must match word by word, except ages, times, and differences
// between versions of kubectl. A step that changes nothing is repeated until it matches. Other
// steps run once. A command that fails with the expected output is no failure.
func TestRun(t *testing.T) {
	dir := t.TempDir()
	// kubectl counts its calls and prints the number.
	if err := os.WriteFile(dir+"/kubectl", []byte("#!/bin/sh\necho x >> calls\nwc -l < calls\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	for _, test := range []struct {
		command string
		want    []string
		passes  bool
	}{
		{"kubectl get foos", []string{"3"}, true},
		{"kubectl apply -f a", []string{"9"}, false},
		{"kubectl apply -f a", []string{"5"}, true},
		{"echo refused >&2; false", []string{"refused"}, true},
		{"false", nil, false},
		{"echo 'NAME     HAPPY   AGE'; echo 'foo-01   true    2m3s'", []string{"NAME HAPPY AGE", "foo-01 true 9s"}, true},
		{"echo 'foo-01   false   9s'", []string{"foo-01 true 9s"}, false},
		{"echo 'foo-01   true    old'", []string{"foo-01 true 9s"}, false},
		{"echo NAME", []string{"NAME", "foo-01"}, false},
		{"echo NAME; echo foo-01", []string{"NAME"}, false},
		{"echo foos 2031-12-31T23:59:59Z", []string{"foos   2026-01-02T03:04:05Z"}, true},
		{`echo 'foo "a" deleted from default namespace'`, []string{`foo "a" deleted`}, true},
		{`echo 'foo "b" deleted'`, []string{`foo "a" deleted`}, false},
	} {
		if output, err := (Step{test.command, test.want}).Run(t.Context(), dir); (err == nil) != test.passes {
			t.Errorf("%q: %q, %v", test.command, output, err)
		}
	}
}
