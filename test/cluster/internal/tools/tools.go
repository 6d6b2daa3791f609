// Package tools installs programs into bin/. Most are built from the Go modules in hack/tools, each
// of which pins the versions of tools with compatible dependencies. Some come from Debian.
package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"

	"github.com/example/nginx-operator/test/cluster/internal/debian"
	"github.com/example/nginx-operator/test/cluster/internal/host"
	"github.com/example/nginx-operator/test/cluster/internal/layout"
)

// Dependency is a Go module in the version that a module in hack/tools requires.
type Dependency struct{ module, path string }

// The cluster needs the version or the source of these dependencies.
var (
	OLM         = Dependency{"olm", "github.com/operator-framework/operator-lifecycle-manager"}
	Registry    = Dependency{"olm", "github.com/operator-framework/operator-registry"}
	OperatorSDK = Dependency{"operator-sdk", "github.com/operator-framework/operator-sdk"}
	OLMv1       = Dependency{"olm-v1", "github.com/operator-framework/operator-controller"}
	CertManager = Dependency{"cert-manager", "github.com/cert-manager/cert-manager"}
	Kubernetes  = Dependency{"kubernetes", "k8s.io/kubernetes"}
	containerd  = Dependency{"containerd", "github.com/containerd/containerd/v2"}
)

// imageTags exclude the parts of the container libraries that need C libraries.
const imageTags = "containers_image_openpgp,exclude_graphdriver_btrfs,exclude_graphdriver_devicemapper"

// prometheusTags exclude all service discoveries except that for Kubernetes, because they take most
// of the build time.
const prometheusTags = "remove_all_sd,enable_kubernetes_sd"

// tool is a program of a Debian package, or one that is built from the Go module proxy. A tool that
// is both is built if the package does not work.
type tool struct {
	// name is the path of the program in bin.
	name string
	// part is the part of the cluster that requires the tool, if any.
	part layout.Part
	// oldest means that only a cluster with the oldest Kubernetes requires the tool.
	oldest bool
	deb    debianProgram
	// module is the directory in hack/tools.
	module  string
	pkg     string
	tags    string
	ldflags func(file *modfile.File) ([]string, error)
}

var tools = slices.Concat(kubernetesComponents(Kubernetes.module), kubernetesComponents(layout.OldestKubernetes), []tool{
	{name: "kubectl", part: layout.Base, module: "kubernetes", pkg: Kubernetes.path + "/cmd/kubectl", ldflags: kubernetesFlags},
	{name: "coredns", part: layout.Base, module: "coredns", pkg: "github.com/example/nginx-operator/hack/tools/coredns"},
	{name: "etcd", part: layout.Base, deb: debianProgram{suite: debian.Stable, pkg: "etcd-server", major: "3"}},
	{
		name: "registry", part: layout.Base,
		deb: debianProgram{suite: debian.Stable, pkg: "docker-registry", program: "docker-registry", major: "2"},
	},
	containerdTool("containerd", "2"), containerdTool("containerd-shim-runc-v2", ""), containerdTool("ctr", ""),
	{name: "metrics-server", part: layout.Metrics, module: "metrics-server", pkg: "sigs.k8s.io/metrics-server/cmd/metrics-server"},
	{
		name: "nginx-prometheus-exporter", part: layout.Exporter, module: "exporter", pkg: "github.com/nginx/nginx-prometheus-exporter",
	},
	{
		name: "scorecard-test", part: layout.Scorecard, module: "operator-sdk", pkg: OperatorSDK.path + "/images/scorecard-test",
		tags: imageTags, ldflags: operatorSDKFlags,
	},
	{name: "operator-sdk", module: "operator-sdk", pkg: OperatorSDK.path + "/cmd/operator-sdk", tags: imageTags, ldflags: operatorSDKFlags},
	{name: "olm", part: layout.OLM, module: "olm", pkg: OLM.path + "/cmd/olm", tags: imageTags},
	{name: "catalog", part: layout.OLM, module: "olm", pkg: OLM.path + "/cmd/catalog", tags: imageTags},
	{name: "package-server", part: layout.OLM, module: "olm", pkg: OLM.path + "/cmd/package-server", tags: imageTags},
	{name: "copy-content", part: layout.OLM, module: "olm", pkg: OLM.path + "/cmd/copy-content", tags: imageTags},
	{name: "cpb", part: layout.OLM, module: "olm", pkg: OLM.path + "/util/cpb", tags: imageTags},
	{name: "opm", part: layout.Catalogs, module: "olm", pkg: Registry.path + "/cmd/opm", tags: imageTags},
	{
		name: "grpc_health_probe", part: layout.Catalogs, module: "grpc-health-probe",
		pkg: "github.com/grpc-ecosystem/grpc-health-probe",
	},
	{name: "catalogd", part: layout.OLMv1, module: "olm-v1", pkg: OLMv1.path + "/cmd/catalogd", tags: imageTags},
	{name: "operator-controller", part: layout.OLMv1, module: "olm-v1", pkg: OLMv1.path + "/cmd/operator-controller", tags: imageTags},
	{name: "cert-manager-controller", part: layout.OLMv1, module: "cert-manager", pkg: CertManager.path + "/cmd/controller"},
	{name: "cert-manager-webhook", part: layout.OLMv1, module: "cert-manager", pkg: CertManager.path + "/cmd/webhook"},
	{
		name: "cert-manager-cainjector", part: layout.OLMv1, module: "cainjector",
		pkg: "github.com/example/nginx-operator/hack/tools/cainjector",
	},
	{name: "helm", module: "helm", pkg: "helm.sh/helm/v3/cmd/helm"},
	{name: "helm4", module: "helm4", pkg: "helm.sh/helm/v4/cmd/helm"},
	{name: "golangci-lint", module: "lint", pkg: "github.com/golangci/golangci-lint/v2/cmd/golangci-lint"},
	{name: "controller-gen", module: "generate", pkg: "sigs.k8s.io/controller-tools/cmd/controller-gen"},
	{name: "crd-ref-docs", module: "generate", pkg: "github.com/elastic/crd-ref-docs"},
	{name: "crdify", module: "crdify", pkg: "sigs.k8s.io/crdify"},
	{name: "crdify-newest", module: "crdify-newest", pkg: "sigs.k8s.io/crdify"},
	{name: "gotestsum", module: "gotestsum", pkg: "gotest.tools/gotestsum"},
	{name: "kwok", module: "kwok", pkg: "sigs.k8s.io/kwok/cmd/kwok"},
	{name: "hugo", module: "hugo", pkg: "github.com/gohugoio/hugo"},
	{name: "promtool", module: "prometheus", pkg: "github.com/prometheus/prometheus/cmd/promtool", tags: prometheusTags},
	{name: "prometheus", module: "prometheus", pkg: "github.com/prometheus/prometheus/cmd/prometheus", tags: prometheusTags},
	{
		name: "prometheus-operator", module: "prometheus-operator",
		pkg: "github.com/prometheus-operator/prometheus-operator/cmd/operator",
	},
})

// kubernetesComponents returns the components of a Kubernetes that the cluster runs. Those of the
// oldest Kubernetes are built into a directory of bin.
func kubernetesComponents(module string) []tool {
	isOldest, dir := module == layout.OldestKubernetes, ""
	if isOldest {
		dir = layout.OldestKubernetes
	}
	components := make([]tool, 0, len(layout.KubernetesComponents))
	for _, name := range layout.KubernetesComponents {
		components = append(components, tool{
			name: path.Join(dir, name), part: layout.Base, oldest: isOldest,
			module: module, pkg: Kubernetes.path + "/cmd/" + name, ldflags: kubernetesFlags,
		})
	}
	return components
}

// containerdTool returns a program of containerd.
func containerdTool(name, major string) tool {
	return tool{
		name: name, part: layout.Base, deb: debianProgram{suite: debian.Rolling, pkg: "containerd", major: major},
		module: containerd.module, pkg: containerd.path + "/cmd/" + name,
	}
}

// kubernetesFlags returns flags that set the version that the API server reports. Without them, OLM
// and clients see v0.0.0.
func kubernetesFlags(file *modfile.File) ([]string, error) {
	version, err := versionOf(file, Kubernetes.path)
	if err != nil {
		return nil, err
	}
	major, minor, _ := strings.Cut(strings.TrimPrefix(semver.MajorMinor(version), "v"), ".")
	var flags []string
	for _, pkg := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		flags = append(flags,
			"-X", pkg+".gitVersion="+version,
			"-X", pkg+".gitMajor="+major,
			"-X", pkg+".gitMinor="+minor)
	}
	return flags, nil
}

// operatorSDKFlags returns flags that set the version that the SDK writes into generated files.
func operatorSDKFlags(file *modfile.File) ([]string, error) {
	version, err := versionOf(file, OperatorSDK.path)
	if err != nil {
		return nil, err
	}
	api, err := versionOf(file, "k8s.io/api")
	if err != nil {
		return nil, err
	}
	pkg := OperatorSDK.path + "/internal/version"
	return []string{
		"-X", pkg + ".Version=" + version,
		"-X", pkg + ".ImageVersion=" + version,
		// k8s.io/api v0.33.9 belongs to Kubernetes v1.33.9.
		"-X", pkg + ".KubernetesVersion=v1" + strings.TrimPrefix(api, "v0"),
	}, nil
}

// Version returns the required version.
func (d Dependency) Version(l layout.Layout) (string, error) {
	file, err := readModule(l, d.module)
	if err != nil {
		return "", err
	}
	return versionOf(file, d.path)
}

// readModule parses the go.mod file of a module of tools.
func readModule(l layout.Layout, name string) (*modfile.File, error) {
	path := filepath.Join(l.ToolModule(name), "go.mod")
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("failed to read the versions of %s: %w", name, err)
	}
	file, err := modfile.Parse(path, data, nil)
	if err != nil {
		return nil, fmt.Errorf("failed to parse the versions of %s: %w", name, err)
	}
	return file, nil
}

// versionOf returns the version that a go.mod file requires.
func versionOf(file *modfile.File, path string) (string, error) {
	for _, required := range file.Require {
		if required.Mod.Path == path {
			return required.Mod.Version, nil
		}
	}
	return "", fmt.Errorf("failed to find %s in the requirements of %s", path, file.Module.Mod.Path)
}

// Dir returns the source directory in the module cache. It downloads the module if necessary.
func (d Dependency) Dir(ctx context.Context, l layout.Layout) (string, error) {
	cmd := goCommand(ctx, l.ToolModule(d.module), "mod", "download", "-json", d.path)
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("failed to download the source of %s: %w", d.path, host.CommandError(err))
	}
	var module struct{ Dir string }
	if err := json.Unmarshal(out, &module); err != nil || module.Dir == "" {
		return "", fmt.Errorf("failed to find the source of %s in the module cache: %w: %s", d.path, err, out)
	}
	return module.Dir, nil
}

// OfParts returns the names of the tools that parts of the cluster require.
func OfParts(l layout.Layout, parts []layout.Part) (names []string) {
	for _, t := range tools {
		if slices.Contains(parts, t.part) && (!t.oldest || l.Oldest) {
			names = append(names, t.name)
		}
	}
	return names
}

// selectTools returns the named tools.
func selectTools(names []string) ([]tool, error) {
	var selected []tool
	for _, name := range names {
		i := slices.IndexFunc(tools, func(t tool) bool { return t.name == name })
		if i < 0 {
			known := make([]string, 0, len(tools))
			for _, t := range tools {
				known = append(known, t.name)
			}
			return nil, fmt.Errorf("unknown tool %q; known: %s", name, strings.Join(known, " "))
		}
		selected = append(selected, tools[i])
	}
	return selected, nil
}
