package docs_test

import (
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"
)

// together are the modules of the operator and of the programs that `make demo` builds.
var together = []string{
	"go.mod", "test/cluster/go.mod", "hack/tools/kubernetes/go.mod", "hack/tools/coredns/go.mod", "hack/tools/containerd/go.mod",
}

// apart are modules of hack/tools that require other versions, or only of one module, with reasons.
var apart = map[string]string{
	"cainjector gomodules.xyz/jsonpatch/v2": "cert-manager 1.21 requires 2.5",
	"cainjector sigs.k8s.io/gateway-api":    "cert-manager 1.21 requires 1.6",
	"cert-manager":                          "1.11 is the last line of cert-manager that is one module, and needs Kubernetes 0.26",
	"hugo":                                  "the newest Hugo that Go 1.26 builds",
	"kubernetes-oldest":                     "the oldest supported Kubernetes",
	"lint":                                  "golangci-lint pins the analyzers, which fail with other versions",
	"olm github.com/containerd/containerd/api":       "containerd 1.7, which opm uses, does not implement 1.12",
	"olm gomodules.xyz/jsonpatch/v2":                 "2.5 would change the patches of the operator's webhook",
	"olm-v1":                                         "operator-controller 1.5.1 needs Kubernetes 0.33",
	"operator-sdk":                                   "operator-sdk 1.42 needs Kubernetes 0.33",
	"prometheus github.com/prometheus/client_golang": "promtool does not compile with the API of 1.25",
	"prometheus-operator github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring": "0.93 does not compile with the API of 0.94",
}

// TestOneVersion checks that the operator, the local cluster, and the tools require each module in
// the same version. Two versions of a module are compiled twice, with all packages that import it.
func TestOneVersion(t *testing.T) {
	others, err := fs.Glob(repository, "hack/*/go.mod")
	tools, toolsErr := fs.Glob(repository, "hack/tools/*/go.mod")
	if err != nil || toolsErr != nil || len(others) == 0 || len(tools) == 0 {
		t.Fatalf("found the modules %q and %q: %v, %v", others, tools, err, toolsErr)
	}
	first, excused := map[string]string{}, map[string]bool{}
	for _, name := range slices.Concat(together, others, tools) {
		file, err := modfile.Parse(name, []byte(read(t, name)), nil)
		if err != nil {
			t.Fatal(err)
		}
		world := path.Base(path.Dir(name))
		for _, required := range file.Require {
			module, version := required.Mod.Path, required.Mod.Version
			if first[module] == "" && slices.Contains(together, name) {
				first[module] = version
			}
			if first[module] == "" || first[module] == version {
				continue
			}
			for _, exception := range []string{world, world + " " + module} {
				excused[exception] = true
			}
			if apart[world] == "" && apart[world+" "+module] == "" {
				t.Errorf("%s requires %s %s, others require %s", name, module, version, first[module])
			}
		}
	}
	for exception, reason := range apart {
		if !excused[exception] {
			t.Errorf("%s needs no exception any more (%s)", exception, reason)
		}
	}
}

// TestNamesOfOperatorSDK checks that each target in the Makefile of an operator-sdk project exists
// here, or that make help has its name in this Makefile.
func TestNamesOfOperatorSDK(t *testing.T) {
	makefile := read(t, "Makefile")
	help := makefile[strings.Index(makefile, "\nhelp:"):strings.Index(makefile, "\ndemo:")]
	targets := strings.Fields(strings.Join(regexp.MustCompile(`(?m)^[a-z][a-z0-9 -]*:`).FindAllString(makefile, -1), " "))
	names := "help manifests generate fmt vet test setup-test-e2e test-e2e cleanup-test-e2e lint lint-fix lint-config build run " +
		"docker-build docker-push docker-buildx build-installer install uninstall deploy undeploy kustomize controller-gen " +
		"setup-envtest envtest golangci-lint operator-sdk bundle bundle-build bundle-push opm catalog-build catalog-push"
	for _, name := range strings.Fields(names) {
		isTarget := slices.ContainsFunc(targets, func(target string) bool { return strings.TrimSuffix(target, ":") == name })
		if !isTarget && !regexp.MustCompile(`[ (']`+name+`[ ,;.]`).MatchString(help) {
			t.Errorf("make help does not say what %s is called here", name)
		}
	}
}
