package node

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/example/nginx-operator/test/cluster/internal/components"
	"github.com/example/nginx-operator/test/cluster/internal/host"
	"github.com/example/nginx-operator/test/cluster/internal/layout"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// newLayout returns the layout of a clone that does not exist yet. It skips the test if the caller
// cannot create namespaces.
func newLayout(t *testing.T) layout.Layout {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("namespaces need root: run the tests as root")
	}
	return layout.New(filepath.Join(t.TempDir(), "clone"))
}

// A clone that was removed while its cluster ran leaves namespaces that the next clone at the same
// path finds. They are recognized, and removed with their processes, but with no other process.
func TestStaleNode(t *testing.T) {
	l := newLayout(t)
	n := New(l)
	remove := func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		must(t, n.Remove(ctx))
	}
	wantStale := func(want bool) {
		t.Helper()
		if stale, err := n.IsStale(); err != nil || stale != want {
			t.Fatalf("stale: %v, %v, want %v", stale, err, want)
		}
	}
	// sleep is a program in the clone's bin. It exists only while this directory does.
	sleep := components.Component{Name: "sleep", Args: []string{layout.NodeBinDir + "/sleep", "600"}}
	clone := func() {
		t.Helper()
		for _, dir := range []string{l.Bin(""), l.LogDir()} {
			must(t, os.MkdirAll(dir, 0o755))
		}
		program, err := os.ReadFile("/bin/sleep")
		must(t, err)
		must(t, host.WriteFile(l.Bin("sleep"), program, 0o755))
	}

	clone()
	t.Cleanup(remove)
	wantStale(false)
	must(t, n.Prepare(t.Context()))
	must(t, n.Start(sleep))
	first, err := n.PID(sleep.Name)
	must(t, err)
	wantStale(false)
	must(t, n.Running())

	must(t, os.RemoveAll(l.Repo))
	wantStale(true)
	clone()
	wantStale(true)
	if err := n.Start(sleep); err == nil {
		t.Fatal("a program of the new clone starts in the old namespace: nothing has to be removed")
	}
	if err := n.Running(); err == nil {
		t.Error("commands use the cluster of the removed clone")
	}
	remove()
	if stat, err := readStat(first); err == nil && stat.alive() {
		t.Errorf("process %d of the removed clone still runs", first)
	}
	if _, err := readStat(os.Getppid()); err != nil {
		t.Errorf("a process outside the cluster ended: %v", err)
	}

	clone()
	must(t, n.Prepare(t.Context()))
	must(t, n.Start(sleep))
	wantStale(false)

	// The same is true if only the programs were replaced.
	must(t, os.RemoveAll(l.Bin("")))
	clone()
	wantStale(true)
}

// TestOldestKubernetes verifies that the node of a cluster with the oldest Kubernetes sees its
// components in place of the newest ones, and that a running cluster keeps its Kubernetes.
func TestOldestKubernetes(t *testing.T) {
	l := newLayout(t)
	for _, name := range append([]string{"etcd"}, layout.KubernetesComponents...) {
		for _, dir := range []string{"", layout.OldestKubernetes} {
			must(t, host.WriteFile(l.Bin(filepath.Join(dir, name)), []byte(dir), 0o755))
		}
	}
	must(t, os.MkdirAll(l.LogDir(), 0o755))
	newest := New(l)
	l.Oldest = true
	oldest := New(l)
	t.Cleanup(func() { must(t, oldest.Remove(context.Background())) })
	must(t, errors.Join(newest.HasKubernetes(), oldest.HasKubernetes()))
	must(t, oldest.Prepare(t.Context()))
	must(t, oldest.inNode(func() error {
		for _, name := range append([]string{"etcd"}, layout.KubernetesComponents...) {
			want := layout.OldestKubernetes
			if name == "etcd" {
				want = ""
			}
			if got, err := os.ReadFile(filepath.Join(layout.NodeBinDir, name)); err != nil || string(got) != want {
				t.Errorf("%s is that of %q, want %q: %v", name, got, want, err)
			}
		}
		return nil
	}))
	must(t, oldest.HasKubernetes())
	if err := newest.HasKubernetes(); err == nil || !strings.Contains(err.Error(), "CLUSTER_KUBERNETES=oldest") {
		t.Errorf("want an error with the remedy, got %v", err)
	}
}
