package debian

import (
	"testing"
	"time"

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

func TestFile(t *testing.T) {
	files := []string{"/a/libc6_2.41-12_amd64.deb", "/a/nginx-common_1.26.3-3_all.deb", "/a/nginx_1.26.3-3+deb13u10_amd64.deb"}
	if file, version := File(files, "nginx"); file != files[2] || version != "1.26.3-3+deb13u10" {
		t.Error(file, version)
	}
	if file, version := File(files, "etcd-server"); file != "" || version != "" {
		t.Error(file, version)
	}
}

func TestUnknownSuite(t *testing.T) {
	if _, err := Nginx(t.Context(), "potato", t.TempDir(), nil); err == nil {
		t.Error("a suite without nginx is fetched")
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
