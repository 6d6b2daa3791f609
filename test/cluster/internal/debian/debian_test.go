package debian

import (
	"testing"
	"time"
)

// TestCacheName checks that the cached packages of the rolling suite expire after a week, and that
// the other suites do not expire.
func TestCacheName(t *testing.T) {
	day := time.Date(2026, 11, 24, 0, 0, 0, 0, time.UTC)
	for _, suite := range Suites {
		p := Packages{Suite: suite, Names: []string{"nginx", "etcd-server"}}
		now, later := p.cacheName(day), p.cacheName(day.AddDate(0, 0, 7))
		if rolls := suite == Rolling; (now != later) != rolls {
			t.Errorf("%s: %s, and a week later %s", suite, now, later)
		}
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
