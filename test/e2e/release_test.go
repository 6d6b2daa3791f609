package e2e

// The files of a release, as users download them: from their URLs, in a directory without the
// repository. TestReadme installs install.yaml, and TestOLMv1 install-cert-manager.yaml, because
// its cluster has cert-manager.
//
//   - SHA256SUMS has the checksum of each file.
//   - The plugin in the archive has the release's version.
//   - A second run of the same commit and images gives the same files. krew's manifest has the
//     checksum of the archive of each platform.

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"
)

// download fetches a file of the release into a directory, and verifies its checksum.
const download = `
curl -fsSLO "$RELEASES/latest/download/SHA256SUMS"
curl -fsSLO "$RELEASES/download/v$VERSION/$FILE"
sha256sum --check --ignore-missing --quiet SHA256SUMS
grep -qF "  $FILE" SHA256SUMS
`

// TestRelease tests the files that each run builds.
func TestRelease(t *testing.T) {
	serveRelease(t)
	t.Run("checksums", testChecksums)
	t.Run("plugin", testReleasedPlugin)
}

// TestCompleteRelease tests the files for all platforms.
func TestCompleteRelease(t *testing.T) {
	TestRelease(t)
	t.Run("again", testReleaseAgain)
	t.Run("krew", testKrewManifest)
}

// inDirectory runs a script in a directory, with the variables of download.
func inDirectory(t *testing.T, dir, file, script string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	variables := []string{"-C", dir, "RELEASES=" + releaseURL, "VERSION=" + suite.version, "FILE=" + file}
	out, err := command(ctx, "env", append(variables, "bash", "-euo", "pipefail", "-c", script)...)
	must(t, err)
	return out
}

func testChecksums(t *testing.T) {
	out := inDirectory(t, releaseDir(), "", "sha256sum --check SHA256SUMS")
	entries, err := os.ReadDir(releaseDir())
	must(t, err)
	for _, entry := range entries {
		if name := entry.Name(); !strings.HasPrefix(name, "SHA256SUMS") && !strings.Contains(out, name+": OK\n") {
			t.Errorf("SHA256SUMS does not have %s", name)
		}
	}
}

func testReleaseAgain(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), installPatience)
	defer cancel()
	began := time.Now()
	_, err := command(ctx, "env", "-C", suite.repository, "bin/release", "files", dir)
	must(t, err)
	t.Logf("FIGURE the files of the release, with warm caches: %s", seconds(time.Since(began)))
	if out, err := command(ctx, "diff", "--recursive", releaseDir(), dir); err != nil {
		t.Errorf("the second run gives other files: %v\n%s", err, out)
	}
}

func testReleasedPlugin(t *testing.T) {
	dir := t.TempDir()
	archive := "kubectl-nginx_" + runtime.GOOS + "_" + runtime.GOARCH + ".tar.gz"
	inDirectory(t, dir, archive, download+"tar -xzf \"$FILE\"")
	if out := inDirectory(t, dir, "", "./kubectl-nginx --version"); !strings.Contains(out, suite.version) {
		t.Errorf("the plugin reports the version %q", out)
	}
}

func testKrewManifest(t *testing.T) {
	dir := t.TempDir()
	inDirectory(t, dir, "krew.yaml", download)
	text, err := os.ReadFile(filepath.Join(dir, "krew.yaml"))
	must(t, err)
	var plugin struct {
		Spec struct {
			Platforms []struct{ URI, SHA256 string }
		}
	}
	must(t, yaml.Unmarshal(text, &plugin))
	if len(plugin.Spec.Platforms) != 6 {
		t.Errorf("krew's manifest has %d platforms", len(plugin.Spec.Platforms))
	}
	for _, platform := range plugin.Spec.Platforms {
		sum := inDirectory(t, dir, "", "curl -fsSL '"+platform.URI+"' | sha256sum")
		if !strings.HasPrefix(sum, platform.SHA256+" ") {
			t.Errorf("%s has the checksum %s, and krew's manifest %s", platform.URI, sum, platform.SHA256)
		}
	}
}

// testInstallManifest installs the operator from a manifest of the release on a clean cluster.
func testInstallManifest(t *testing.T, file string) {
	startInDefault(t)
	kubectl(t, "apply", "--server-side", "-f", manifestURL(file))
	waitForOperator(t)
	namespace := newNamespace(t, restricted)
	newInstance(t, namespace, "web", 1)
	testInstalled(t, file, namespace)
}

func manifestURL(file string) string {
	return fmt.Sprintf("%s/download/v%s/%s", releaseURL, suite.version, file)
}

// testInstalled requires that an operator from a manifest runs by the digest of its image, and
// rejects an invalid object. After the deletion of a namespace with its instances and of the
// manifest, nothing is left.
func testInstalled(t *testing.T, file, namespace string) {
	t.Helper()
	refusesByAdmission(t, namespace)
	operators, err := operatorPods(t.Context(), defaultNamespace)
	must(t, err)
	repository, _, _ := strings.Cut(os.Getenv("OPERATOR_IMAGE"), ":v")
	runsFrom(t, operators, repository+"@sha256:")
	must(t, deleteNamespace(t.Context(), namespace))
	waitForNoNamespace(t, namespace)
	kubectl(t, "delete", "--wait", "-f", manifestURL(file))
	waitForUninstall(t)
}
