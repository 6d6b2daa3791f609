// Package helmtest compares the rendered charts that the cluster installs with their sources. Only
// tests need Helm.
package helmtest

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/example/nginx-operator/test/cluster/internal/host"
	"github.com/example/nginx-operator/test/cluster/internal/layout"
	"github.com/example/nginx-operator/test/cluster/internal/tools"
)

var update = flag.Bool("update", false, "write the rendered charts")

// Repo returns the layout of this clone.
func Repo(t *testing.T) layout.Layout {
	t.Helper()
	repo, err := layout.FindRepo()
	if err != nil {
		t.Fatal(err)
	}
	return layout.New(repo)
}

// Source returns the directory and the version of a module.
func Source(t *testing.T, l layout.Layout, d tools.Dependency) (dir, version string) {
	t.Helper()
	dir, err := d.Dir(t.Context(), l)
	if err != nil {
		t.Fatal(err)
	}
	if version, err = d.Version(l); err != nil {
		t.Fatal(err)
	}
	return dir, version
}

// Compare renders a chart directory with Helm 3, which `make test` builds, for a namespace and the
// cluster's version of Kubernetes. The release has the name of the file in which the result must
// be. Each value is KEY=VALUE, as for --set.
func Compare(t *testing.T, l layout.Layout, file, namespace, chart string, values ...string) {
	t.Helper()
	version, err := tools.Kubernetes.Version(l)
	if err != nil {
		t.Fatal(err)
	}
	release := file[:len(file)-len(filepath.Ext(file))]
	args := []string{"template", release, chart, "--namespace", namespace, "--kube-version", version}
	for _, value := range values {
		args = append(args, "--set", value)
	}
	cmd := exec.Command(l.Bin("helm"), args...)
	// Keep Helm out of the user's own directories.
	cmd.Env = append(os.Environ(), "HOME="+t.TempDir())
	rendered, err := cmd.Output()
	if err != nil {
		t.Fatalf("cannot render the chart (make bin/helm builds Helm): %v", host.CommandError(err))
	}
	if *update {
		if err := os.WriteFile(file, rendered, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	committed, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(rendered), string(committed)); diff != "" {
		t.Errorf("%s differs from the chart; go test -update writes it:\n%s", file, diff)
	}
}
