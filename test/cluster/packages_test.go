package main

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseDependencies(t *testing.T) {
	got, err := parseDependencies("nginx\n  Depends: iproute2\n  Depends: nginx-common\n  Depends: libc6\n  Depends: zlib1g\n  Suggests: liba\n")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"nginx", "nginx-common", "libc6", "zlib1g"}, got); diff != "" {
		t.Error(diff)
	}
	if _, err := parseDependencies("nginx\n  Depends: iproute2\n"); err == nil {
		t.Error("want an error without libraries")
	}
}

func TestOneLine(t *testing.T) {
	if got := oneLine(errors.New("exit status 100"), "a\nE: no such package\n").Error(); got != "exit status 100: E: no such package" {
		t.Errorf("got %q", got)
	}
}
