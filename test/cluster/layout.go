package main

// This file says where everything of one cluster is: addresses, names, files.

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// The addresses come from the ranges reserved for documentation (RFC 5737) and benchmarks (RFC 2544): nothing that a
// test could want to reach outside uses them. Every cluster uses the same ones, each in a network namespace of its own.
const (
	nodeName         = "node0"
	nodeIP           = "192.0.2.1"
	gatewayIP        = "192.0.2.254"
	podCIDR          = "198.18.0.0/16"
	nodePodCIDR      = "198.18.0.0/24"
	serviceCIDR      = "198.19.0.0/16"
	kubernetesIP     = "198.19.0.1"
	clusterDomain    = "cluster.local"
	registryPort     = "5000"
	registryAddress  = nodeIP + ":" + registryPort
	apiServerAddress = nodeIP + ":6443"
)

// The node has a mount namespace of its own in which /run, /var/lib and /var/log belong to the cluster. So the
// components find their files at the usual places, whatever the depth of the clone (the path of a Unix socket is limited
// to 107 characters), and two clusters on one machine do not meet.
const (
	nodeStateDir  = "/run/cluster"
	nodeBinDir    = "/run/bin"
	nodeConfigDir = nodeStateDir + "/config"
	nodePKIDir    = nodeStateDir + "/pki"
)

// layout holds the names and the folders of the cluster of one clone.
type layout struct {
	// repo is the root folder of the clone.
	repo string
	// id names what is global to the machine: the network namespace, the cgroup, the folder under /run.
	id string
}

// newLayout derives the names from the path of the clone: two clones can run their clusters at the same time.
func newLayout(repo string) layout {
	sum := sha256.Sum256([]byte(repo))
	return layout{repo: repo, id: "nginx-operator-" + hex.EncodeToString(sum[:4])}
}

func (l layout) bin(name string) string      { return filepath.Join(l.repo, "bin", name) }
func (l layout) world(name string) string    { return filepath.Join(l.repo, "hack", "tools", name) }
func (l layout) stamp(name string) string    { return filepath.Join(l.repo, "bin", ".stamps", name) }
func (l layout) state(elem ...string) string { return l.join(filepath.Join(l.repo, ".cluster"), elem) }
func (l layout) logs(elem ...string) string  { return l.join(l.state("logs"), elem) }
func (l layout) run(elem ...string) string   { return l.join("/run/"+l.id, elem) }
func (l layout) log(component string) string { return l.logs(component + ".log") }
func (l layout) kubeconfig() string          { return l.state("admin.kubeconfig") }
func (l layout) auditLog() string            { return l.logs("audit.log") }
func (l layout) netns() string               { return l.run("net") }
func (l layout) mountns() string             { return l.run("mnt") }

// nodeRun is what the node sees as /run.
func (l layout) nodeRun(elem ...string) string { return l.join(l.run("node"), elem) }

// containerdSocket is the path from outside of the node.
func (l layout) containerdSocket() string { return l.nodeRun("containerd", "containerd.sock") }

func (layout) join(base string, elem []string) string {
	return filepath.Join(append([]string{base}, elem...)...)
}

// findRepo returns the clone that the program belongs to: the one whose bin folder holds it, or else (go run) the one
// that holds the working directory.
func findRepo() (string, error) {
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
	data, err := os.ReadFile(filepath.Join(dir, "go.mod")) // #nosec G304 -- a file of the clone
	return err == nil && strings.Contains(string(data), "/nginx-operator\n")
}
