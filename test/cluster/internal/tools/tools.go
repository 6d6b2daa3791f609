// Package tools builds programs from the Go modules in hack/tools into bin/. Each of these modules
// pins the versions of tools with compatible dependencies.
package tools

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

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

// buildLimit bounds one build, including the download of modules over a slow connection.
const buildLimit = time.Hour

// tool is a program to build from the Go module proxy.
type tool struct {
	name string
	// module is the directory in hack/tools.
	module  string
	pkg     string
	tags    string
	ldflags func(versions moduleVersions) ([]string, error)
	// cluster marks the tools that the cluster requires.
	cluster bool
}

var tools = []tool{
	{name: "kubectl", module: "kubernetes", pkg: Kubernetes.path + "/cmd/kubectl", ldflags: kubernetesFlags, cluster: true},
	{name: "kube-apiserver", module: "kubernetes", pkg: Kubernetes.path + "/cmd/kube-apiserver", ldflags: kubernetesFlags, cluster: true},
	{
		name: "kube-controller-manager", module: "kubernetes", pkg: Kubernetes.path + "/cmd/kube-controller-manager",
		ldflags: kubernetesFlags, cluster: true,
	},
	{name: "kube-scheduler", module: "kubernetes", pkg: Kubernetes.path + "/cmd/kube-scheduler", ldflags: kubernetesFlags, cluster: true},
	{name: "kubelet", module: "kubernetes", pkg: Kubernetes.path + "/cmd/kubelet", ldflags: kubernetesFlags, cluster: true},
	{name: "kube-proxy", module: "kubernetes", pkg: Kubernetes.path + "/cmd/kube-proxy", ldflags: kubernetesFlags, cluster: true},
	{name: "etcd", module: "etcd", pkg: "go.etcd.io/etcd/server/v3", cluster: true},
	{name: "containerd", module: "containerd", pkg: containerd.path + "/cmd/containerd", cluster: true},
	{name: "containerd-shim-runc-v2", module: "containerd", pkg: containerd.path + "/cmd/containerd-shim-runc-v2", cluster: true},
	{name: "ctr", module: "containerd", pkg: containerd.path + "/cmd/ctr", cluster: true},
	{name: "coredns", module: "coredns", pkg: "github.com/coredns/coredns", cluster: true},
	{
		name: "metrics-server", module: "metrics-server", pkg: "sigs.k8s.io/metrics-server/cmd/metrics-server", cluster: true,
	},
	{name: "registry", module: "registry", pkg: "github.com/distribution/distribution/v3/cmd/registry", cluster: true},
	{name: "olm", module: "olm", pkg: OLM.path + "/cmd/olm", tags: imageTags, cluster: true},
	{name: "catalog", module: "olm", pkg: OLM.path + "/cmd/catalog", tags: imageTags, cluster: true},
	{name: "package-server", module: "olm", pkg: OLM.path + "/cmd/package-server", tags: imageTags, cluster: true},
	{name: "copy-content", module: "olm", pkg: OLM.path + "/cmd/copy-content", tags: imageTags, cluster: true},
	{name: "cpb", module: "olm", pkg: OLM.path + "/util/cpb", tags: imageTags, cluster: true},
	{name: "opm", module: "olm", pkg: Registry.path + "/cmd/opm", tags: imageTags, cluster: true},
	{name: "operator-sdk", module: "operator-sdk", pkg: OperatorSDK.path + "/cmd/operator-sdk", tags: imageTags, ldflags: operatorSDKFlags},
	{
		name: "scorecard-test", module: "operator-sdk", pkg: OperatorSDK.path + "/images/scorecard-test",
		tags: imageTags, ldflags: operatorSDKFlags, cluster: true,
	},
	{name: "helm", module: "helm", pkg: "helm.sh/helm/v3/cmd/helm", cluster: true},
	{name: "grpc_health_probe", module: "grpc-health-probe", pkg: "github.com/grpc-ecosystem/grpc-health-probe", cluster: true},
	{name: "nginx-prometheus-exporter", module: "exporter", pkg: "github.com/nginx/nginx-prometheus-exporter", cluster: true},
	{name: "catalogd", module: "olm-v1", pkg: OLMv1.path + "/cmd/catalogd", tags: imageTags},
	{name: "operator-controller", module: "olm-v1", pkg: OLMv1.path + "/cmd/operator-controller", tags: imageTags},
	{name: "cert-manager-controller", module: "cert-manager", pkg: CertManager.path + "/cmd/controller"},
	{name: "cert-manager-cainjector", module: "cert-manager", pkg: CertManager.path + "/cmd/cainjector"},
	{name: "cert-manager-webhook", module: "cert-manager", pkg: CertManager.path + "/cmd/webhook"},
	{name: "golangci-lint", module: "lint", pkg: "github.com/golangci/golangci-lint/v2/cmd/golangci-lint"},
	{name: "controller-gen", module: "generate", pkg: "sigs.k8s.io/controller-tools/cmd/controller-gen"},
	{name: "crd-ref-docs", module: "generate", pkg: "github.com/elastic/crd-ref-docs"},
	{name: "crdify", module: "crdify", pkg: "sigs.k8s.io/crdify"},
	{name: "gotestsum", module: "gotestsum", pkg: "gotest.tools/gotestsum"},
	{name: "promtool", module: "prometheus", pkg: "github.com/prometheus/prometheus/cmd/promtool", tags: prometheusTags},
	{name: "prometheus", module: "prometheus", pkg: "github.com/prometheus/prometheus/cmd/prometheus", tags: prometheusTags},
}

// kubernetesFlags returns flags that set the version that the API server reports. Without them, OLM
// and clients see v0.0.0.
func kubernetesFlags(versions moduleVersions) ([]string, error) {
	version, err := versions.of(Kubernetes.path)
	if err != nil {
		return nil, err
	}
	major, minor, ok := majorMinor(version)
	if !ok {
		return nil, fmt.Errorf("failed to read the version of %s: %q", Kubernetes.path, version)
	}
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
func operatorSDKFlags(versions moduleVersions) ([]string, error) {
	version, err := versions.of(OperatorSDK.path)
	if err != nil {
		return nil, err
	}
	api, err := versions.of("k8s.io/api")
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

// majorMinor splits v1.37.0 into 1 and 37.
func majorMinor(version string) (major, minor string, ok bool) {
	parts := strings.SplitN(strings.TrimPrefix(version, "v"), ".", 3)
	if len(parts) != 3 || parts[0] == "" || parts[1] == "" {
		return "", "", false
	}
	return parts[0], parts[1], true
}

// moduleVersions has the required versions of a go.mod file, by module path.
type moduleVersions map[string]string

func (v moduleVersions) of(path string) (string, error) {
	if version, ok := v[path]; ok {
		return version, nil
	}
	return "", fmt.Errorf("failed to find %s in the requirements", path)
}

// parseRequirements parses the requirements of a go.mod file.
func parseRequirements(gomod string) moduleVersions {
	versions := moduleVersions{}
	for line := range strings.Lines(gomod) {
		line, _, _ = strings.Cut(line, "//")
		fields := strings.Fields(strings.TrimPrefix(strings.TrimSpace(line), "require "))
		if len(fields) == 2 && strings.HasPrefix(fields[1], "v") {
			versions[fields[0]] = fields[1]
		}
	}
	return versions
}

// Version returns the required version.
func (d Dependency) Version(l layout.Layout) (string, error) {
	data, err := os.ReadFile(filepath.Join(l.ToolModule(d.module), "go.mod"))
	if err != nil {
		return "", fmt.Errorf("failed to read the versions of %s: %w", d.module, err)
	}
	return parseRequirements(string(data)).of(d.path)
}

// Dir returns the source directory in the module cache.
func (d Dependency) Dir(ctx context.Context, l layout.Layout) (string, error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", d.path)
	cmd.Dir = l.ToolModule(d.module)
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("failed to find the source of %s: %w", d.path, host.CommandError(err))
	}
	dir := strings.TrimSpace(string(out))
	if dir == "" {
		return "", fmt.Errorf("failed to find the source of %s in the module cache", d.path)
	}
	return dir, nil
}

// selectTools returns the named tools. Without names, it returns the tools that the cluster
// requires.
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
	if len(names) == 0 {
		for _, t := range tools {
			if t.cluster {
				selected = append(selected, t)
			}
		}
	}
	return selected, nil
}

// group is a set of tools that one go build command builds.
type group struct {
	module string
	tools  []tool
	args   []string
	// stamp is a digest of all inputs of the tools. If it equals the stamp of the last build, the
	// tools are up to date.
	stamp string
}

// output returns the value of -o: the file for a single tool, or the directory for several tools.
func (g group) output(binDir string) string {
	if len(g.tools) == 1 {
		return filepath.Join(binDir, g.tools[0].name)
	}
	return binDir + string(filepath.Separator)
}

// groupTools groups tools that one command can build: tools of the same module with the same flags.
// A tool whose name differs from Go's default name is a group of its own.
func groupTools(l layout.Layout, selected []tool, goVersion string) ([]group, error) {
	index := map[string]int{}
	var groups []group
	for _, t := range selected {
		args, stamp, err := buildArgs(l, t, goVersion)
		if err != nil {
			return nil, err
		}
		key := t.module + "\x00" + strings.Join(args, "\x00")
		if path.Base(t.pkg) != t.name {
			key += "\x00" + t.name
		}
		i, ok := index[key]
		if !ok {
			i = len(groups)
			index[key] = i
			groups = append(groups, group{module: t.module, args: args, stamp: stamp})
		}
		groups[i].tools = append(groups[i].tools, t)
	}
	return groups, nil
}

// buildArgs returns the arguments of go build, and a digest of all inputs of the tool.
func buildArgs(l layout.Layout, t tool, goVersion string) (args []string, stamp string, err error) {
	gomod, err := os.ReadFile(filepath.Join(l.ToolModule(t.module), "go.mod"))
	if err != nil {
		return nil, "", fmt.Errorf("failed to read the module of %s: %w", t.name, err)
	}
	gosum, err := os.ReadFile(filepath.Join(l.ToolModule(t.module), "go.sum"))
	if err != nil {
		return nil, "", fmt.Errorf("failed to read the module of %s: %w", t.name, err)
	}
	ldflags := []string{"-s", "-w"}
	if t.ldflags != nil {
		more, err := t.ldflags(parseRequirements(string(gomod)))
		if err != nil {
			return nil, "", err
		}
		ldflags = append(ldflags, more...)
	}
	args = []string{"-trimpath", "-ldflags", strings.Join(ldflags, " ")}
	if t.tags != "" {
		args = append(args, "-tags", t.tags)
	}
	sum := sha256.New()
	sum.Write(gomod)
	sum.Write(gosum)
	fmt.Fprintln(sum, goVersion, runtime.GOOS, runtime.GOARCH, args)
	return args, hex.EncodeToString(sum.Sum(nil)), nil
}

// upToDate reports whether a program exists and was built from the inputs with this stamp.
func upToDate(l layout.Layout, name, stamp string) bool {
	data, err := os.ReadFile(l.Stamp(name))
	if err != nil || string(data) != stamp {
		return false
	}
	_, err = os.Stat(l.Bin(name))
	return err == nil
}

// Build builds the named tools that are not up to date. Without names, it builds the tools that the
// cluster requires.
func Build(ctx context.Context, l layout.Layout, names []string, progress *host.Progress) error {
	selected, err := selectTools(names)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "go", "env", "GOVERSION")
	cmd.Dir = l.Repo
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("failed to find out the version of Go: %w", host.CommandError(err))
	}
	groups, err := groupTools(l, selected, strings.TrimSpace(string(out)))
	if err != nil {
		return err
	}
	for _, g := range groups {
		g.tools = slices.DeleteFunc(g.tools, func(t tool) bool { return upToDate(l, t.name, g.stamp) })
		if len(g.tools) == 0 {
			continue
		}
		if err := buildGroup(ctx, l, g, progress); err != nil {
			return err
		}
	}
	return nil
}

func buildGroup(ctx context.Context, l layout.Layout, g group, progress *host.Progress) error {
	names := make([]string, 0, len(g.tools))
	args := append([]string{"build", "-o", g.output(l.Bin(""))}, g.args...)
	for _, t := range g.tools {
		names = append(names, t.name)
		args = append(args, t.pkg)
	}
	progress.Step("building %s (the first time takes minutes)", strings.Join(names, " "))
	ctx, cancel := context.WithTimeout(ctx, buildLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = l.ToolModule(g.module)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=-mod=readonly")
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("failed to build %s: %w", strings.Join(names, " "), err)
	}
	for _, t := range g.tools {
		if err := host.WriteFile(l.Stamp(t.name), []byte(g.stamp), 0o600); err != nil {
			return fmt.Errorf("failed to record the build of %s: %w", t.name, err)
		}
	}
	return nil
}

// BuildPause compiles the program of the pause image from the source of Kubernetes.
func BuildPause(ctx context.Context, l layout.Layout, progress *host.Progress) error {
	version, err := Kubernetes.Version(l)
	if err != nil || upToDate(l, "pause", version) {
		return err
	}
	progress.Step("building pause")
	dir, err := Kubernetes.Dir(ctx, l)
	if err != nil {
		return err
	}
	source := filepath.Join(dir, "build", "pause", "linux", "pause.c")
	_, tag, _ := strings.Cut(layout.PauseImage, ":")
	err = host.Run(ctx, "gcc", "-Os", "-Wall", "-static", "-s", "-DVERSION=v"+tag, "-o", l.Bin("pause"), source)
	if err != nil {
		return host.Unavailable("the C compiler does not work: %w", err)
	}
	if err := host.WriteFile(l.Stamp("pause"), []byte(version), 0o600); err != nil {
		return fmt.Errorf("failed to record the build of pause: %w", err)
	}
	return nil
}
