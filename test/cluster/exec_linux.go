package main

// This file runs commands inside of the cluster's network.

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// environment is what a command in the cluster's network gets to see.
func (l layout) environment() []string {
	return mergeEnv(os.Environ(), []string{
		"PATH=" + l.bin("") + string(filepath.ListSeparator) + os.Getenv("PATH"),
		"KUBECONFIG=" + l.kubeconfig(),
		"SSL_CERT_FILE=" + l.state("pki", "bundle.crt"),
		"CURL_CA_BUNDLE=" + l.state("pki", "bundle.crt"),
		"IMAGE_REGISTRY=" + registryAddress,
		"CLUSTER_AUDIT_LOG=" + l.auditLog(),
		"CLUSTER_ETCD_URL=" + etcdURL,
		// A module that is not in the cache cannot be fetched: say so at once.
		"GOPROXY=off",
		"BUILDAH_ISOLATION=chroot",
		"STORAGE_DRIVER=vfs",
		"CONTAINERS_STORAGE_CONF=" + l.state("config", "storage.conf"),
		"CONTAINERS_REGISTRIES_CONF=" + l.state("config", "registries.conf"),
		"CONTAINERD_ADDRESS=" + l.containerdSocket(),
		"CONTAINERD_NAMESPACE=k8s.io",
	})
}

// exec replaces this program by a command in the cluster's network, whose names are those of the cluster's DNS.
func (c *cluster) exec(args []string) error {
	if !isNamespace(c.netns()) {
		return errNotRunning
	}
	if os.Geteuid() != 0 {
		return unavailable("this needs root")
	}
	if len(args) == 1 {
		args = []string{"sh", "-c", args[0]}
	}
	env := c.environment()
	// The command is looked for where it will run.
	if err := os.Setenv("PATH", c.bin("")+string(filepath.ListSeparator)+os.Getenv("PATH")); err != nil {
		return fmt.Errorf("failed to set PATH: %w", err)
	}
	program, err := exec.LookPath(args[0])
	if err != nil {
		return fmt.Errorf("failed to find %s: %w", args[0], err)
	}
	return onOwnThread(func() error {
		if err := setns(c.netns(), unix.CLONE_NEWNET); err != nil {
			return err
		}
		if err := c.useClusterDNS(); err != nil {
			return err
		}
		// This thread becomes the process: same id, same parent, same terminal.
		if err := unix.Exec(program, args, env); err != nil {
			return fmt.Errorf("failed to run %s: %w", program, err)
		}
		return nil
	})
}

// useClusterDNS puts the cluster's resolv.conf over the machine's in a mount namespace of the command's own.
func (l layout) useClusterDNS() error {
	const resolvConf = "/etc/resolv.conf"
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("failed to make a mount namespace: %w", err)
	}
	// What the machine unmounts is to vanish here as well.
	if err := mount("", "/", unix.MS_REC|unix.MS_SLAVE); err != nil {
		return err
	}
	if _, err := os.Stat(resolvConf); errors.Is(err, os.ErrNotExist) {
		return nil // nothing to cover; the command then has no DNS
	}
	return mount(l.state("config", "resolv.conf"), resolvConf, unix.MS_BIND)
}

// command prepares a command in the cluster's network with its output on stderr.
func (l layout) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...) // #nosec G204 -- fixed programs
	cmd.Env = l.environment()
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	return cmd
}

// runInNetwork runs a command in the cluster's network.
func (l layout) runInNetwork(cmd *exec.Cmd) error {
	if err := l.inNetwork(cmd.Start); err != nil {
		return fmt.Errorf("failed to run %s: %w", cmd.Path, err)
	}
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("failed to run %s: %w", strings.Join(cmd.Args, " "), err)
	}
	return nil
}
