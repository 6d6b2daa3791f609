package docs_test

import (
	"io/fs"
	"path"
	"slices"
	"testing"

	"golang.org/x/mod/modfile"
)

// together are the modules of the product and of the programs that `make demo` builds.
var together = []string{
	"go.mod", "test/cluster/go.mod", "hack/tools/kubernetes/go.mod", "hack/tools/coredns/go.mod", "hack/tools/containerd/go.mod",
}

// apart are the modules of hack/tools with other versions, and the reason.
var apart = map[string]string{
	"cert-manager":      "1.11 is the last line of cert-manager that is one module, and needs Kubernetes 0.26",
	"hugo":              "the newest Hugo that Go 1.26 builds",
	"kubernetes-oldest": "the oldest supported Kubernetes",
	"lint":              "golangci-lint pins the analyzers, which fail with other versions",
	"olm-v1":            "operator-controller 1.5.1 needs Kubernetes 0.33",
	"operator-sdk":      "operator-sdk 1.42 needs Kubernetes 0.33",
}

// TestOneVersion checks that the product, the local cluster, and the tools require each module in
// the same version. Two versions of a module are compiled twice, with all packages that import it.
func TestOneVersion(t *testing.T) {
	tools, err := fs.Glob(repository, "hack/*/*/go.mod")
	if err != nil || len(tools) < 2 {
		t.Fatalf("found the modules %q: %v", tools, err)
	}
	type requirement struct{ version, file string }
	first, found := map[string]requirement{}, map[string]int{}
	for _, name := range append(slices.Clone(together), tools...) {
		file, err := modfile.Parse(name, []byte(read(t, name)), nil)
		if err != nil {
			t.Fatal(err)
		}
		world := path.Base(path.Dir(name))
		for _, required := range file.Require {
			module, is := required.Mod.Path, requirement{required.Mod.Version, name}
			want, known := first[module]
			switch {
			case !known:
				if slices.Contains(together, name) {
					first[module] = is
				}
			case want.version != is.version:
				found[world]++
				if apart[world] == "" {
					t.Errorf("%s requires %s %s, and %s requires %s", is.file, module, is.version, want.file, want.version)
				}
			}
		}
	}
	for world, reason := range apart {
		if found[world] == 0 {
			t.Errorf("%s has the same versions as the product: it needs no exception (%s)", world, reason)
		}
	}
}
