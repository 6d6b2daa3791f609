package debian

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWithDependencies(t *testing.T) {
	got := withDependencies([]string{"nginx", "zlib1g"},
		"nginx\n  Depends: iproute2\n  Depends: nginx-common\n"+
			"  Depends: libc6\n  Depends: zlib1g\n  Suggests: liba\nlibc6\n  Depends: libgcc-s1\n")
	if diff := cmp.Diff([]string{"nginx", "zlib1g", "nginx-common", "libc6", "libgcc-s1"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestParseMirror(t *testing.T) {
	for targets, want := range map[string]string{
		"": defaultMirror,
		"https://packages.example.com tools\nhttp://mirror.example.com/debian-security Debian-Security\n" +
			"http://mirror.example.com/debian Debian\n": "http://mirror.example.com/debian",
	} {
		if got := parseMirror(targets); got != want {
			t.Errorf("%q: got %s, want %s", targets, got, want)
		}
	}
}

func TestLastLine(t *testing.T) {
	if got := lastLine(errors.New("exit status 100"), "a\nE: no such package\n").Error(); got != "exit status 100: E: no such package" {
		t.Errorf("got %q", got)
	}
}
