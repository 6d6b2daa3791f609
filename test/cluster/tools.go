package main

// This file holds the table of the tools and builds them from their modules under hack/tools into bin/.

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// A world is a module under hack/tools: tools that share one set of dependency versions.
const (
	worldKubernetes  = "kubernetes"
	worldEtcd        = "etcd"
	worldContainerd  = "containerd"
	worldCoreDNS     = "coredns"
	worldRegistry    = "registry"
	worldOLM         = "olm"
	worldOperatorSDK = "operator-sdk"
	worldHelm        = "helm"
	worldHealthProbe = "grpc-health-probe"
	worldLint        = "lint"
	worldGenerate    = "generate"
	worldCRDify      = "crdify"
	worldGoTestSum   = "gotestsum"
)

const (
	moduleKubernetes  = "k8s.io/kubernetes"
	moduleAPI         = "k8s.io/api"
	moduleOLM         = "github.com/operator-framework/operator-lifecycle-manager"
	moduleRegistry    = "github.com/operator-framework/operator-registry"
	moduleOperatorSDK = "github.com/operator-framework/operator-sdk"
	moduleContainerd  = "github.com/containerd/containerd/v2"
)

// imageTags leave out what the container libraries need C libraries for.
const imageTags = "containers_image_openpgp,exclude_graphdriver_btrfs,exclude_graphdriver_devicemapper"

// buildLimit bounds the build of one world, which may have to fetch its modules over a slow line first.
const buildLimit = time.Hour

// tool is a program that is built from the Go module proxy.
type tool struct {
	name    string
	world   string
	pkg     string
	tags    string
	ldflags func(versions moduleVersions) ([]string, error)
	// cluster marks the tools without which the cluster does not start.
	cluster bool
}

var tools = []tool{
	{name: "kubectl", world: worldKubernetes, pkg: moduleKubernetes + "/cmd/kubectl", ldflags: kubernetesFlags, cluster: true},
	{name: "kube-apiserver", world: worldKubernetes, pkg: moduleKubernetes + "/cmd/kube-apiserver", ldflags: kubernetesFlags, cluster: true},
	{name: "kube-controller-manager", world: worldKubernetes, pkg: moduleKubernetes + "/cmd/kube-controller-manager", ldflags: kubernetesFlags, cluster: true},
	{name: "kube-scheduler", world: worldKubernetes, pkg: moduleKubernetes + "/cmd/kube-scheduler", ldflags: kubernetesFlags, cluster: true},
	{name: "kubelet", world: worldKubernetes, pkg: moduleKubernetes + "/cmd/kubelet", ldflags: kubernetesFlags, cluster: true},
	{name: "kube-proxy", world: worldKubernetes, pkg: moduleKubernetes + "/cmd/kube-proxy", ldflags: kubernetesFlags, cluster: true},
	{name: "etcd", world: worldEtcd, pkg: "go.etcd.io/etcd/server/v3", cluster: true},
	{name: "containerd", world: worldContainerd, pkg: moduleContainerd + "/cmd/containerd", cluster: true},
	{name: "containerd-shim-runc-v2", world: worldContainerd, pkg: moduleContainerd + "/cmd/containerd-shim-runc-v2", cluster: true},
	{name: "ctr", world: worldContainerd, pkg: moduleContainerd + "/cmd/ctr", cluster: true},
	{name: "coredns", world: worldCoreDNS, pkg: "github.com/coredns/coredns", cluster: true},
	{name: "registry", world: worldRegistry, pkg: "github.com/distribution/distribution/v3/cmd/registry", cluster: true},
	{name: "olm", world: worldOLM, pkg: moduleOLM + "/cmd/olm", tags: imageTags, cluster: true},
	{name: "catalog", world: worldOLM, pkg: moduleOLM + "/cmd/catalog", tags: imageTags, cluster: true},
	{name: "package-server", world: worldOLM, pkg: moduleOLM + "/cmd/package-server", tags: imageTags, cluster: true},
	{name: "copy-content", world: worldOLM, pkg: moduleOLM + "/cmd/copy-content", tags: imageTags, cluster: true},
	{name: "cpb", world: worldOLM, pkg: moduleOLM + "/util/cpb", tags: imageTags, cluster: true},
	{name: "opm", world: worldOLM, pkg: moduleRegistry + "/cmd/opm", tags: imageTags, cluster: true},
	{name: "operator-sdk", world: worldOperatorSDK, pkg: moduleOperatorSDK + "/cmd/operator-sdk", tags: imageTags, ldflags: operatorSDKFlags},
	{name: "scorecard-test", world: worldOperatorSDK, pkg: moduleOperatorSDK + "/images/scorecard-test", tags: imageTags, ldflags: operatorSDKFlags, cluster: true},
	{name: "helm", world: worldHelm, pkg: "helm.sh/helm/v3/cmd/helm", cluster: true},
	{name: "grpc_health_probe", world: worldHealthProbe, pkg: "github.com/grpc-ecosystem/grpc-health-probe", cluster: true},
	{name: "golangci-lint", world: worldLint, pkg: "github.com/golangci/golangci-lint/v2/cmd/golangci-lint"},
	{name: "controller-gen", world: worldGenerate, pkg: "sigs.k8s.io/controller-tools/cmd/controller-gen"},
	{name: "crd-ref-docs", world: worldGenerate, pkg: "github.com/elastic/crd-ref-docs"},
	{name: "crdify", world: worldCRDify, pkg: "sigs.k8s.io/crdify"},
	{name: "gotestsum", world: worldGoTestSum, pkg: "gotest.tools/gotestsum"},
}

// kubernetesFlags set the version that the API server reports; without them OLM and clients see v0.0.0.
func kubernetesFlags(versions moduleVersions) ([]string, error) {
	version, err := versions.of(moduleKubernetes)
	if err != nil {
		return nil, err
	}
	major, minor, ok := majorMinor(version)
	if !ok {
		return nil, fmt.Errorf("failed to read the version of %s: %q", moduleKubernetes, version)
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

// operatorSDKFlags set the version that the SDK writes into what it generates.
func operatorSDKFlags(versions moduleVersions) ([]string, error) {
	version, err := versions.of(moduleOperatorSDK)
	if err != nil {
		return nil, err
	}
	api, err := versions.of(moduleAPI)
	if err != nil {
		return nil, err
	}
	pkg := moduleOperatorSDK + "/internal/version"
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

// moduleVersions are the versions that the go.mod file of a world requires.
type moduleVersions map[string]string

func (v moduleVersions) of(module string) (string, error) {
	if version, ok := v[module]; ok {
		return version, nil
	}
	return "", fmt.Errorf("failed to find %s in the requirements", module)
}

// parseRequirements reads the requirements of a go.mod file.
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

// worldVersions returns what a world requires.
func (l layout) worldVersions(world string) (moduleVersions, error) {
	data, err := os.ReadFile(filepath.Join(l.world(world), "go.mod"))
	if err != nil {
		return nil, fmt.Errorf("failed to read the versions of %s: %w", world, err)
	}
	return parseRequirements(string(data)), nil
}

// moduleVersion returns the version of one module in one world.
func (l layout) moduleVersion(world, module string) (string, error) {
	versions, err := l.worldVersions(world)
	if err != nil {
		return "", err
	}
	return versions.of(module)
}

// moduleDir returns the folder of a module's source in the module cache.
func (l layout) moduleDir(ctx context.Context, world, module string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", module) // #nosec G204 -- from the table
	cmd.Dir = l.world(world)
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("failed to find the source of %s: %w", module, commandError(err))
	}
	dir := strings.TrimSpace(string(out))
	if dir == "" {
		return "", fmt.Errorf("failed to find the source of %s in the module cache", module)
	}
	return dir, nil
}

// selectTools returns the named tools, or those that the cluster needs when none is named.
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

// group is a set of tools that one go build makes.
type group struct {
	world string
	tools []tool
	args  []string
	// stamp changes with everything that goes into the tools; it is compared with the one of the last build.
	stamp string
}

// output is the value of -o: a folder where Go's own names are the right ones, else the file.
func (g group) output(binDir string) string {
	if len(g.tools) == 1 {
		return filepath.Join(binDir, g.tools[0].name)
	}
	return binDir + string(filepath.Separator)
}

// groupTools joins what can be built by one command: tools of one world with the same flags and with the name that Go
// gives them anyway.
func (l layout) groupTools(selected []tool, goVersion string) ([]group, error) {
	index := map[string]int{}
	var groups []group
	for _, t := range selected {
		args, stamp, err := l.buildArgs(t, goVersion)
		if err != nil {
			return nil, err
		}
		key := t.world + "\x00" + strings.Join(args, "\x00")
		if path.Base(t.pkg) != t.name {
			key += "\x00" + t.name
		}
		i, ok := index[key]
		if !ok {
			i = len(groups)
			index[key] = i
			groups = append(groups, group{world: t.world, args: args, stamp: stamp})
		}
		groups[i].tools = append(groups[i].tools, t)
	}
	return groups, nil
}

func (l layout) buildArgs(t tool, goVersion string) (args []string, stamp string, err error) {
	versions, err := l.worldVersions(t.world)
	if err != nil {
		return nil, "", err
	}
	ldflags := []string{"-s", "-w"}
	if t.ldflags != nil {
		more, err := t.ldflags(versions)
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
	for _, name := range []string{"go.mod", "go.sum"} {
		data, err := os.ReadFile(filepath.Join(l.world(t.world), name))
		if err != nil {
			return nil, "", fmt.Errorf("failed to read the module of %s: %w", t.name, err)
		}
		sum.Write(data)
	}
	fmt.Fprintln(sum, goVersion, runtime.GOOS, runtime.GOARCH, args)
	return args, hex.EncodeToString(sum.Sum(nil)), nil
}

func (l layout) upToDate(t tool, stamp string) bool {
	data, err := os.ReadFile(l.stamp(t.name))
	if err != nil || string(data) != stamp {
		return false
	}
	_, err = os.Stat(l.bin(t.name))
	return err == nil
}

// buildTools builds what is not up to date.
func (l layout) buildTools(ctx context.Context, names []string, progress *progress) error {
	selected, err := selectTools(names)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "go", "env", "GOVERSION")
	cmd.Dir = l.repo
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("failed to find out the version of Go: %w", commandError(err))
	}
	groups, err := l.groupTools(selected, strings.TrimSpace(string(out)))
	if err != nil {
		return err
	}
	for _, g := range groups {
		g.tools = slices.DeleteFunc(g.tools, func(t tool) bool { return l.upToDate(t, g.stamp) })
		if len(g.tools) == 0 {
			continue
		}
		if err := l.buildGroup(ctx, g, progress); err != nil {
			return err
		}
	}
	return nil
}

func (l layout) buildGroup(ctx context.Context, g group, progress *progress) error {
	names := make([]string, 0, len(g.tools))
	args := append([]string{"build", "-o", g.output(filepath.Join(l.repo, "bin"))}, g.args...)
	for _, t := range g.tools {
		names = append(names, t.name)
		args = append(args, t.pkg)
	}
	progress.step("building %s (the first time takes minutes)", strings.Join(names, " "))
	if err := os.MkdirAll(filepath.Dir(l.stamp("x")), 0o755); err != nil { // #nosec G301 -- a folder of programs
		return fmt.Errorf("failed to make the folder of the tools: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, buildLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", args...) // #nosec G204 -- from the table
	cmd.Dir = l.world(g.world)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=-mod=readonly")
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("failed to build %s: %w", strings.Join(names, " "), err)
	}
	for _, t := range g.tools {
		if err := os.WriteFile(l.stamp(t.name), []byte(g.stamp), 0o600); err != nil {
			return fmt.Errorf("failed to note the build of %s: %w", t.name, err)
		}
	}
	return nil
}

// commandError adds what a command wrote to stderr to its exit status.
func commandError(err error) error {
	var exit *exec.ExitError
	if errors.As(err, &exit) && len(exit.Stderr) > 0 {
		return fmt.Errorf("%w: %s", err, strings.TrimSpace(string(exit.Stderr)))
	}
	return err
}
