package tools

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/example/nginx-operator/test/cluster/internal/host"
	"github.com/example/nginx-operator/test/cluster/internal/layout"
)

// buildPackage builds a .deb file with one program, and returns its path.
func buildPackage(t *testing.T, name, version, script string) string {
	t.Helper()
	dir := t.TempDir()
	for file, content := range map[string]string{
		"DEBIAN/control":  "Package: " + name + "\nVersion: " + version + "\nArchitecture: all\nMaintainer: a@example.com\nDescription: x\n",
		"usr/bin/" + name: script,
	} {
		if err := host.WriteFile(filepath.Join(dir, "root", file), []byte(content), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	out := filepath.Join(dir, name+"_"+version+"_all.deb")
	if text, err := exec.Command("dpkg-deb", "--build", filepath.Join(dir, "root"), out).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return out
}

// TestExtract checks that a program of a package is extracted, and used only if it starts and has
// the required version.
func TestExtract(t *testing.T) {
	for script, want := range map[string]string{
		"#!/bin/sh\necho containerd github.com/containerd/containerd 2.1.9~ds1 abc\n":  "",
		"#!/bin/sh\necho containerd github.com/containerd/containerd/v2 1.7.24 2.0\n":  "is not version 2",
		"#!/bin/sh\necho 2.1.9; echo \"version 'GLIBC_2.99' not found\" >&2; exit 1\n": "'GLIBC_2.99' not found",
		"#!/no/such/interpreter\n": "does not start",
	} {
		program := filepath.Join(t.TempDir(), "containerd")
		if err := extract(buildPackage(t, "containerd", "2.1.9", script), map[string]string{"usr/bin/containerd": program}); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(program); err != nil || string(got) != script {
			t.Errorf("got %q, %v", got, err)
		}
		err := debianProgram{suite: "sid", pkg: "containerd", major: "2"}.check(t.Context(), program)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v", script, err)
		}
	}
	if err := extract(buildPackage(t, "other", "1", ""), map[string]string{"usr/bin/containerd": ""}); err == nil {
		t.Error("want an error for a package without the program")
	}
}

// TestUnpackFallsBack checks that only programs without a source fail if no package can be had.
func TestUnpackFallsBack(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("PATH", "")
	l := layout.New(t.TempDir())
	selected, err := selectTools([]string{"containerd", "ctr"})
	if err != nil {
		t.Fatal(err)
	}
	unsuitable, err := unpack(t.Context(), l, selected, host.NewProgress())
	if err != nil || len(unsuitable) != len(selected) {
		t.Errorf("got %v, %v", unsuitable, err)
	}
	if selected, err = selectTools([]string{"etcd"}); err != nil {
		t.Fatal(err)
	}
	if _, err := unpack(t.Context(), l, selected, host.NewProgress()); err == nil {
		t.Error("want an error for a program that nothing can build")
	}
}
