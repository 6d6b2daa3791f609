package main

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// realRelease changes to a copy of what a release of this repository is made from. The programs of
// the plugin and the documents of the images are texts. The digest of an image is the checksum of
// its name, and the rendered bundle consists of the arguments of opm.
func realRelease(t *testing.T) *project {
	t.Helper()
	root, err := filepath.Abs("../..")
	must(t, err)
	dir := t.TempDir()
	inDirectory(t, dir)
	for _, dir := range []string{"config", "bundle", "catalog", "charts", "examples/config"} {
		must(t, os.CopyFS(dir, os.DirFS(filepath.Join(root, dir))))
	}
	made := map[string]string{
		"bin/cluster": "#!/bin/sh\nshift 2\nexec \"$@\"\n",
		"bin/oci": "#!/bin/sh\nfor image; do :; done\n" +
			"[ $1 != programs ] || { echo \"$@\" > dist/kubectl-nginx/kubectl-nginx.spdx.json; exit; }\n" +
			"printf 'sha256:%s\\n' $(printf %s $image | sha256sum | cut -c -64)\n",
		"tools/go": "#!/bin/sh\n", "tools/opm": "#!/bin/sh\necho \"$@\"\n",
	}
	for _, file := range []string{"VERSION", "CHANGELOG.md", "LICENSE", krewManifest, "bundle.Dockerfile", "catalog.Dockerfile"} {
		content, err := os.ReadFile(filepath.Join(root, file))
		must(t, err)
		made[file] = string(content)
	}
	for _, image := range []string{
		"nginx-operator", "nginx-operator-bundle", "nginx-operator-catalog", "nginx-operator-scorecard", "nginx-request-metrics",
	} {
		made["dist/sbom/"+image+".spdx.json"] = "SBOM of " + image
		made["dist/provenance/"+image+".intoto.json"] = "provenance of " + image
	}
	for _, platform := range pluginPlatforms {
		made[filepath.Join(pluginDir, platform, pluginProgram(platform))] = "program for " + platform
	}
	files(t, made)
	git(t, "init", "--quiet")
	git(t, "add", "VERSION")
	git(t, "commit", "--quiet", "--message=state")
	t.Setenv("PATH", dir+"/tools"+":"+os.Getenv("PATH"))
	p, err := load()
	must(t, err)
	return p
}

// digestOf returns the digest of an image in the registry of these tests.
func digestOf(image string) string { return fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(image))) }

// readRelease returns the files of a directory without subdirectories.
func readRelease(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	must(t, err)
	out := map[string]string{}
	for _, entry := range entries {
		content, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		must(t, err)
		out[entry.Name()] = string(content)
	}
	return out
}

// TestReleaseIsReproducible checks that two runs give the same files, and that nothing of an
// earlier release remains.
func TestReleaseIsReproducible(t *testing.T) {
	p := realRelease(t)
	files(t, map[string]string{"dist/first/left.txt": "of an earlier release"})
	for _, dir := range []string{"dist/first", "dist/second"} {
		must(t, p.packRelease(dir))
	}
	made := readRelease(t, "dist/first")
	if diff := cmp.Diff(made, readRelease(t, "dist/second")); diff != "" {
		t.Errorf("the second run differs: %s", diff)
	}
	want := []string{
		"SHA256SUMS", "community-operators.tar.gz", "install-cert-manager.yaml", "install.yaml",
		"krew.yaml", "kubectl-nginx.spdx.json",
		"kubectl-nginx_darwin_amd64.tar.gz", "kubectl-nginx_darwin_arm64.tar.gz", "kubectl-nginx_linux_amd64.tar.gz",
		"kubectl-nginx_linux_arm64.tar.gz", "kubectl-nginx_windows_amd64.zip", "kubectl-nginx_windows_arm64.zip",
		"nginx-operator-" + p.version + ".tgz", "nginx-operator-bundle.intoto.json", "nginx-operator-bundle.spdx.json",
		"nginx-operator-catalog.intoto.json", "nginx-operator-catalog.spdx.json", "nginx-operator-scorecard.intoto.json",
		"nginx-operator-scorecard.spdx.json", "nginx-operator.intoto.json", "nginx-operator.spdx.json",
		"nginx-request-metrics.intoto.json", "nginx-request-metrics.spdx.json", "release-notes.md",
	}
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(made))); diff != "" {
		t.Errorf("files of the release: %s", diff)
	}
}

// TestSignatureStatement checks that the notes of a release say that it is signed exactly if the
// repository has the public key. The link must lead to the key of that release.
func TestSignatureStatement(t *testing.T) {
	p := realRelease(t)
	tree := "https://github.com/example/nginx-operator/blob/v" + p.version + "/"
	verify := "[Verify a download](" + tree + "docs/guide/operations/downloads.md).\n"
	statement := func() string {
		made, err := p.noteFiles("")
		must(t, err)
		notes := string(made["release-notes.md"])
		return notes[strings.LastIndex(notes, "\n\n"):]
	}
	if diff := cmp.Diff("\n\n**This release is not signed.** `SHA256SUMS` has the checksums of its files. "+verify, statement()); diff != "" {
		t.Errorf("without a public key: %s", diff)
	}
	files(t, map[string]string{publicKey: "a public key"})
	want := "\n\n**This release is signed**: `SHA256SUMS.sig` is the signature of `SHA256SUMS` with [the key of the project](" +
		tree + "cosign.pub). " + verify
	if diff := cmp.Diff(want, statement()); diff != "" {
		t.Errorf("with a public key: %s", diff)
	}
}

// TestReleaseNotes checks that the notes are the dated section of the release, with links that work
// outside of the repository.
func TestReleaseNotes(t *testing.T) {
	const changelog = "# Changelog\n\n## 0.2.0 - 2026-02-01\n\nNew [field](docs/a.md#b), [license](LICENSE), [other](https://x.org/y).\n\n" +
		"### Added\n\n- More.\n\n## 0.1.0 - 2026-01-01\n\nFirst.\n\n## 0.0.1 - 2026-01-01\n\n"
	got, err := releaseNotes(changelog, "0.2.0")
	const blob = "https://github.com/example/nginx-operator/blob/v0.2.0/"
	want := "# nginx-operator 0.2.0\n\nReleased on 2026-02-01.\n\nNew [field](" + blob + "docs/a.md#b), [license](" + blob +
		"LICENSE), [other](https://x.org/y).\n\n### Added\n\n- More.\n"
	if err != nil || got != want {
		t.Errorf("got %q (%v)", got, err)
	}
	for _, version := range []string{"0.3.0", "0.0.1", "0.2"} {
		if notes, err := releaseNotes(changelog, version); err == nil {
			t.Errorf("%s has the notes %q", version, notes)
		}
	}
}
