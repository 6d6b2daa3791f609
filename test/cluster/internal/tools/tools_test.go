package tools

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/example/nginx-operator/test/cluster/internal/host"
	"github.com/example/nginx-operator/test/cluster/internal/layout"
)

func thisRepo(t *testing.T) layout.Layout {
	t.Helper()
	repo, err := layout.FindRepo()
	if err != nil {
		t.Fatal(err)
	}
	return layout.New(repo)
}

// TestToolsArePinned checks that every tool that is built is a tool of its module. Otherwise its
// version is not pinned.
func TestToolsArePinned(t *testing.T) {
	l := thisRepo(t)
	seen := map[string]bool{}
	for _, tool := range tools {
		if seen[tool.name] {
			t.Errorf("%s is there twice", tool.name)
		}
		seen[tool.name] = true
		if tool.pkg == "" && tool.deb.pkg != "" {
			continue
		}
		data, err := os.ReadFile(filepath.Join(l.ToolModule(tool.module), "go.mod"))
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Contains(strings.Fields(string(data)), tool.pkg) {
			t.Errorf("%s: hack/tools/%s/go.mod has no tool %s", tool.name, tool.module, tool.pkg)
		}
	}
}

func TestSelectTools(t *testing.T) {
	named, err := selectTools([]string{"etcd", "opm"})
	if err != nil || len(named) != 2 || named[0].name != "etcd" || named[1].name != "opm" {
		t.Errorf("got %v, %v", named, err)
	}
	if _, err := selectTools([]string{"docker"}); err == nil || !strings.Contains(err.Error(), "kubectl") {
		t.Errorf("want an error that names the known tools, got %v", err)
	}
}

// TestOfParts checks that a cluster for a page needs only Kubernetes, CoreDNS, and Debian's
// programs.
func TestOfParts(t *testing.T) {
	base, want := []layout.Part{layout.Base}, slices.Concat(layout.KubernetesComponents, []string{
		"kubectl", "coredns", "etcd", "registry", "containerd", "containerd-shim-runc-v2", "ctr",
	})
	if diff := cmp.Diff(want, OfParts(layout.Layout{}, base)); diff != "" {
		t.Error(diff)
	}
	if got := OfParts(layout.Layout{Oldest: true}, base); len(got) != len(want)+len(layout.KubernetesComponents) {
		t.Errorf("the oldest Kubernetes needs %v", got)
	}
	for _, part := range layout.Parts {
		if got := OfParts(layout.Layout{}, []layout.Part{part}); len(got) == 0 {
			t.Errorf("%s has no tools", part)
		}
	}
}

func TestByModule(t *testing.T) {
	selected, err := selectTools([]string{"kubelet", "crdify", "kubectl", "catalog", "opm", "kubernetes-oldest/kubelet"})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, group := range byModule(selected) {
		names := make([]string, len(group))
		for i, tool := range group {
			names[i] = tool.name
		}
		got = append(got, strings.Join(names, " "))
	}
	if diff := cmp.Diff([]string{"kubelet kubectl", "crdify", "catalog opm", "kubernetes-oldest/kubelet"}, got); diff != "" {
		t.Error(diff)
	}
}

// TestBuildArgs checks the flags, and that a stamp depends on the version of Go and on each file of
// the module.
func TestBuildArgs(t *testing.T) {
	l := layout.New(t.TempDir())
	write := func(name, text string) {
		if err := host.WriteFile(filepath.Join(l.ToolModule(Kubernetes.module), name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	tool, stamps := tool{name: "x", module: Kubernetes.module, pkg: "x", ldflags: kubernetesFlags, tags: "a,b"}, map[string]bool{}
	build := func(goVersion string) string {
		args, stamp, err := buildArgs(l, tool, goVersion)
		if err != nil {
			t.Fatal(err)
		}
		stamps[stamp] = true
		return strings.Join(args, " ")
	}
	write("go.mod", "module x\n\nrequire k8s.io/kubernetes v1.37.0 // indirect\n")
	args := build("go1")
	for _, want := range []string{
		"-s -w", "-tags a,b",
		"-X k8s.io/component-base/version.gitVersion=v1.37.0", "-X k8s.io/client-go/pkg/version.gitMinor=37",
	} {
		if !strings.Contains(args, want) {
			t.Errorf("%s: no %s", args, want)
		}
	}
	build("go1")
	build("go2")
	write("go.sum", "one")
	build("go1")
	write("main.go", "package main")
	build("go1")
	if len(stamps) != 4 {
		t.Errorf("five builds with four different inputs have %d stamps", len(stamps))
	}
}

// TestFlags checks that the cluster's programs are built with the flags that the Makefile exports.
func TestFlags(t *testing.T) {
	makefile, err := os.ReadFile(filepath.Join(thisRepo(t).Repo, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"export GOFLAGS := " + Flags, "export CGO_ENABLED := 0"} {
		if !strings.Contains(string(makefile), "\n"+line+"\n") {
			t.Errorf("the Makefile has no line %q", line)
		}
	}
	for name, value := range compilerLimits {
		if !regexp.MustCompile(`export GO_BUILD_ENV := .*\b` + name + "=" + value + `\b`).Match(makefile) {
			t.Errorf("the Makefile does not set %s=%s", name, value)
		}
	}
}

func TestWithoutDownloads(t *testing.T) {
	if got := withoutDownloads("go: downloading a v1.0.0\nx.go:1: broken\ngo: downloading b v1.0.0\n"); got != "x.go:1: broken\n" {
		t.Errorf("got %q", got)
	}
}
