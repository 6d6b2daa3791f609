// Package layout defines the addresses, names, and files of the cluster of one clone.
package layout

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// The addresses are from the ranges reserved for documentation (RFC 5737) and benchmarks (RFC
// 2544), so they hide no external address that a test could contact. All clusters use the same
// addresses, each in its own network namespace.
const (
	NodeName         = "node0"
	NodeIP           = "192.0.2.1"
	GatewayIP        = "192.0.2.254"
	PodCIDR          = "198.18.0.0/16"
	NodePodCIDR      = "198.18.0.0/24"
	ServiceCIDR      = "198.19.0.0/16"
	KubernetesIP     = "198.19.0.1"
	ClusterDomain    = "cluster.local"
	RegistryAddress  = NodeIP + ":5000"
	RegistryURL      = "https://" + RegistryAddress
	APIServerAddress = NodeIP + ":6443"
	APIServerURL     = "https://" + APIServerAddress
	EtcdURL          = "http://127.0.0.1:2379"
	MetricsPort      = "4443"
)

// PauseImage is the image of the container that holds the namespaces of a Pod.
const PauseImage = "registry.k8s.io/pause:3.10"

// The node has its own mount namespace, in which /run, /var/lib, and /var/log belong to the
// cluster. The components find their files at the usual paths, and two clusters on one machine do
// not conflict. The path of a Unix socket does not depend on the path of the clone, which could
// exceed the limit of 107 characters.
const (
	NodeStateDir  = "/run/cluster"
	NodeBinDir    = "/run/bin"
	NodeConfigDir = NodeStateDir + "/config"
	NodePKIDir    = NodeStateDir + "/pki"
)

// Layout holds the names and the directories of the cluster of one clone.
type Layout struct {
	// Repo is the root directory of the clone.
	Repo string
	// ID is the name of the machine-wide resources: the network namespace, the cgroup, and the
	// directory in /run.
	ID string
	// Oldest means that a new cluster runs the oldest supported Kubernetes, not the newest.
	Oldest bool
}

// Part is a piece of the cluster: its programs, images, processes, and objects.
type Part string

// Base is what a served page needs; every cluster has it. The other parts start on request.
const (
	Base      Part = "base"
	Metrics   Part = "metrics"
	Exporter  Part = "exporter"
	Scorecard Part = "scorecard"
	// Catalogs is the base image of catalogs. OLM and OLMv1 include it.
	Catalogs Part = "catalogs"
	OLM      Part = "olm"
	OLMv1    Part = "olm-v1"
)

// Parts are the parts that can be requested, in the order in which they start.
var Parts = []Part{Metrics, Exporter, Scorecard, Catalogs, OLM, OLMv1}

// ParseParts returns Base, the named parts, and those that they include, in the order in which they
// start.
func ParseParts(names []string) ([]Part, error) {
	for _, name := range names {
		if !slices.Contains(Parts, Part(name)) {
			return nil, fmt.Errorf("unknown part %q: one of %v", name, Parts)
		}
	}
	named := func(p Part) bool { return slices.Contains(names, string(p)) }
	return withBase(func(p Part) bool { return named(p) || p == Catalogs && (named(OLM) || named(OLMv1)) }), nil
}

// withBase returns Base and the other parts that are selected.
func withBase(selected func(Part) bool) []Part {
	parts := []Part{Base}
	for _, p := range Parts {
		if selected(p) {
			parts = append(parts, p)
		}
	}
	return parts
}

// Started is the file that exists once a part has started.
func (l Layout) Started(p Part) string { return l.State("parts", string(p)) }

// WithStarted adds the parts that the cluster already has.
func (l Layout) WithStarted(parts []Part) []Part {
	return withBase(func(p Part) bool {
		_, err := os.Stat(l.Started(p))
		return err == nil || slices.Contains(parts, p)
	})
}

// OldestKubernetes is the module of hack/tools, and the directory in bin, of the oldest supported
// Kubernetes.
const OldestKubernetes = "kubernetes-oldest"

// KubernetesComponents are the components of Kubernetes that the cluster runs.
var KubernetesComponents = []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy"}

// New derives the ID from the path of the clone, so that the clusters of two clones can run at the
// same time.
func New(repo string) Layout {
	sum := sha256.Sum256([]byte(repo))
	return Layout{Repo: repo, ID: "nginx-operator-" + hex.EncodeToString(sum[:4])}
}

// Bin is the path of a built program.
func (l Layout) Bin(name string) string { return filepath.Join(l.Repo, "bin", name) }

// ToolModule is the directory of a Go module of tools.
func (l Layout) ToolModule(name string) string { return filepath.Join(l.Repo, "hack", "tools", name) }

// Stamp is the file that identifies the sources of a built program.
func (l Layout) Stamp(name string) string { return filepath.Join(l.Repo, "bin", ".stamps", name) }

// State is a path in the directory that exists as long as the cluster.
func (l Layout) State(elem ...string) string { return join(filepath.Join(l.Repo, ".cluster"), elem) }

// Config is the path of a configuration file.
func (l Layout) Config(name string) string { return l.State("config", name) }

// PKI is the path of a certificate or a key.
func (l Layout) PKI(name string) string { return l.State("pki", name) }

// Kubeconfig is the administrator's kubeconfig file.
func (l Layout) Kubeconfig() string { return l.State("admin.kubeconfig") }

// LogDir is a path in the log directory.
func (l Layout) LogDir(elem ...string) string { return join(l.State("logs"), elem) }

// Log is the log of a component.
func (l Layout) Log(component string) string { return l.LogDir(component + ".log") }

// AuditLog is the audit log of the API server.
func (l Layout) AuditLog() string { return l.LogDir("audit.log") }

// RunDir is a path in the cluster's directory in /run, which is a mount.
func (l Layout) RunDir(elem ...string) string { return join("/run/"+l.ID, elem) }

// NetNS is the file on which the network namespace is mounted.
func (l Layout) NetNS() string { return l.RunDir("net") }

// MountNS is the file on which the node's mount namespace is mounted.
func (l Layout) MountNS() string { return l.RunDir("mnt") }

// NodeRunDir is a path in the directory that is /run in the node.
func (l Layout) NodeRunDir(elem ...string) string { return join(l.RunDir("node"), elem) }

// ContainerdSocket is the path of containerd's socket outside the node.
func (l Layout) ContainerdSocket() string { return l.NodeRunDir("containerd", "containerd.sock") }

func join(base string, elem []string) string {
	return filepath.Join(append([]string{base}, elem...)...)
}

// FindRepo returns the clone of this program. If the program is not in the bin directory of a clone
// (go run), it returns the clone of the working directory.
func FindRepo() (string, error) {
	if executable, err := os.Executable(); err == nil {
		if executable, err = filepath.EvalSymlinks(executable); err == nil {
			if dir := filepath.Dir(filepath.Dir(executable)); isRepo(dir) {
				return dir, nil
			}
		}
	}
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("failed to find the working directory: %w", err)
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return "", fmt.Errorf("failed to resolve the working directory: %w", err)
	}
	for ; ; dir = filepath.Dir(dir) {
		if isRepo(dir) {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("failed to find the repository: run this inside of it")
		}
	}
}

func isRepo(dir string) bool {
	info, err := os.Stat(filepath.Join(dir, "hack", "tools"))
	if err != nil || !info.IsDir() {
		return false
	}
	data, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	return err == nil && strings.Contains(string(data), "/nginx-operator\n")
}
