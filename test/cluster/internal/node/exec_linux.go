package node

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/example/nginx-operator/test/cluster/internal/host"
	"github.com/example/nginx-operator/test/cluster/internal/layout"
)

// environment returns the environment of commands in the cluster's network.
func (n *Node) environment() []string {
	return mergeEnv(os.Environ(), []string{
		"PATH=" + n.Bin("") + string(filepath.ListSeparator) + os.Getenv("PATH"),
		"KUBECONFIG=" + n.Kubeconfig(),
		"SSL_CERT_FILE=" + n.PKI("bundle.crt"),
		"CURL_CA_BUNDLE=" + n.PKI("bundle.crt"),
		"IMAGE_REGISTRY=" + layout.RegistryAddress,
		"CLUSTER_AUDIT_LOG=" + n.AuditLog(),
		"CLUSTER_ETCD_URL=" + layout.EtcdURL,
		"CLUSTER_PKI=" + n.PKI(""),
		// A module that is not in the cache cannot be downloaded. Fail immediately.
		"GOPROXY=off",
		"BUILDAH_ISOLATION=chroot",
		"STORAGE_DRIVER=vfs",
		"CONTAINERS_STORAGE_CONF=" + n.Config("storage.conf"),
		"CONTAINERS_REGISTRIES_CONF=" + n.Config("registries.conf"),
		"CONTAINERD_ADDRESS=" + n.ContainerdSocket(),
		"CONTAINERD_NAMESPACE=k8s.io",
	})
}

// Exec replaces this program with a command in the cluster's network, which uses the cluster's DNS.
func (n *Node) Exec(args []string) error {
	if os.Geteuid() != 0 {
		return host.Unavailable("this needs root")
	}
	if err := n.Running(); err != nil {
		return err
	}
	if len(args) == 1 {
		args = []string{"sh", "-c", args[0]}
	}
	env := n.environment()
	// Look up the command with the PATH that it will have.
	if err := os.Setenv("PATH", n.Bin("")+string(filepath.ListSeparator)+os.Getenv("PATH")); err != nil {
		return fmt.Errorf("failed to set PATH: %w", err)
	}
	program, err := exec.LookPath(args[0])
	if err != nil {
		return fmt.Errorf("failed to find %s: %w", args[0], err)
	}
	return onOwnThread(func() error {
		if err := setns(n.NetNS(), unix.CLONE_NEWNET); err != nil {
			return err
		}
		if err := n.useClusterDNS(); err != nil {
			return err
		}
		// This thread becomes the process, with the same ID, parent, and terminal.
		if err := unix.Exec(program, args, env); err != nil {
			return fmt.Errorf("failed to run %s: %w", program, err)
		}
		return nil
	})
}

// useClusterDNS moves the thread to a new mount namespace, in which the cluster's resolv.conf
// covers the machine's.
func (n *Node) useClusterDNS() error {
	const resolvConf = "/etc/resolv.conf"
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("failed to make a mount namespace: %w", err)
	}
	// Unmounts on the machine also apply here.
	if err := mount("", "/", unix.MS_REC|unix.MS_SLAVE); err != nil {
		return err
	}
	if _, err := os.Stat(resolvConf); errors.Is(err, os.ErrNotExist) {
		return nil // no file to cover; the command has no DNS
	}
	return mount(n.Config("resolv.conf"), resolvConf, unix.MS_BIND)
}

// Run runs a command in the cluster's network and returns its output. The error includes the
// output.
func (n *Node) Run(ctx context.Context, stdin io.Reader, name string, args ...string) (string, error) {
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = n.environment()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, &out, &out
	if err := n.inNetwork(cmd.Start); err != nil {
		return "", fmt.Errorf("failed to run %s: %w", cmd.Path, err)
	}
	if err := cmd.Wait(); err != nil {
		return "", fmt.Errorf("failed to run %s: %w\n%s", strings.Join(cmd.Args, " "), err, strings.TrimSpace(out.String()))
	}
	return out.String(), nil
}

// mergeEnv returns base with the values of override. Each name occurs once, because programs differ
// in which of two values they use. Proxy variables are removed, because the cluster's network has
// no outside access and so reaches no proxy.
func mergeEnv(base, override []string) []string {
	overridden := map[string]bool{}
	for _, entry := range override {
		name, _, _ := strings.Cut(entry, "=")
		overridden[name] = true
	}
	merged := slices.DeleteFunc(slices.Clone(base), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return overridden[name] || strings.HasSuffix(strings.ToLower(name), "_proxy")
	})
	return append(merged, override...)
}
