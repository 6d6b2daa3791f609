package main

// This file makes the two namespaces that the node lives in: one for the network, one for the mounts.

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// commandTimeout bounds the short commands (ip, ctr, ...).
const commandTimeout = 30 * time.Second

// inNetwork runs f on a thread inside of the cluster's network namespace. What f starts or opens stays there.
func (l layout) inNetwork(f func() error) error {
	return onOwnThread(func() error {
		if err := setns(l.netns(), unix.CLONE_NEWNET); err != nil {
			return err
		}
		return f()
	})
}

// inNode runs f on a thread inside of both namespaces, where the paths are those of the node.
func (l layout) inNode(f func() error) error {
	return onOwnThread(func() error {
		if err := setns(l.netns(), unix.CLONE_NEWNET); err != nil {
			return err
		}
		// A thread that shares its working directory with others must not change the mount namespace.
		if err := unix.Unshare(unix.CLONE_FS); err != nil {
			return fmt.Errorf("failed to detach the thread: %w", err)
		}
		if err := setns(l.mountns(), unix.CLONE_NEWNS); err != nil {
			return err
		}
		return f()
	})
}

// onOwnThread runs f on a thread that ends with it, because nothing else may run in a thread whose namespaces differ.
func onOwnThread(f func() error) error {
	result := make(chan error, 1)
	go func() {
		// Never unlocked: the runtime ends the thread together with the goroutine.
		runtime.LockOSThread()
		result <- f()
	}()
	return <-result
}

func setns(path string, kind int) error {
	file, err := os.Open(path) // #nosec G304 -- a namespace of the cluster
	if err != nil {
		return fmt.Errorf("failed to open the namespace: %w", err)
	}
	defer func() { _ = file.Close() }()
	if err := unix.Setns(int(file.Fd()), kind); err != nil {
		return fmt.Errorf("failed to enter the namespace %s: %w", path, err)
	}
	return nil
}

// dial connects from inside of the cluster's network.
func (l layout) dial(ctx context.Context, network, address string) (net.Conn, error) {
	var conn net.Conn
	err := l.inNetwork(func() error {
		var err error
		conn, err = new(net.Dialer).DialContext(ctx, network, address)
		return err
	})
	return conn, err
}

// createRun makes the folder under /run. It is a mount that does not propagate: a mount namespace can be kept nowhere else.
func (l layout) createRun() error {
	if err := os.MkdirAll(l.run(), 0o755); err != nil { // #nosec G301 -- the node's /run is below
		return fmt.Errorf("failed to make %s: %w", l.run(), err)
	}
	mounts, err := readMounts()
	if err != nil || slices.Contains(mounts, l.run()) {
		return err
	}
	if err := mount(l.run(), l.run(), unix.MS_BIND); err != nil {
		return unavailable("nothing can be mounted: %w", err)
	}
	return mount("", l.run(), unix.MS_PRIVATE)
}

// keepNamespace makes a namespace, lets arrange furnish it from inside, and keeps it at path.
func keepNamespace(path, kind string, flag int, arrange func() error) error {
	if isNamespace(path) {
		return nil
	}
	if err := writeFile(path, nil, 0o600); err != nil {
		return err
	}
	ready, kept, done := make(chan int), make(chan error, 1), make(chan error, 1)
	go func() {
		done <- onOwnThread(func() error {
			if err := unix.Unshare(flag); err != nil {
				return unavailable("no namespace (%s) can be made: %w", kind, err)
			}
			if err := arrange(); err != nil {
				return err
			}
			ready <- unix.Gettid()
			return <-kept
		})
	}()
	select {
	case err := <-done:
		return err
	case tid := <-ready:
		kept <- mount(fmt.Sprintf("/proc/self/task/%d/ns/%s", tid, kind), path, unix.MS_BIND)
		return <-done
	}
}

// createNetwork makes a network namespace without a way out. The node's address is on one end of a veth pair whose
// other end stays inside (not every kernel has dummy devices); without the default route over it the addresses of
// services would be unreachable.
func (l layout) createNetwork(ctx context.Context) error {
	return keepNamespace(l.netns(), "net", unix.CLONE_NEWNET, func() error {
		for _, command := range []string{
			"link set lo up",
			"link add " + nodeName + " type veth peer name " + nodeName + "-peer",
			"link set " + nodeName + "-peer up",
			"addr add " + nodeIP + "/24 dev " + nodeName,
			"link set " + nodeName + " up",
			"route add default via " + gatewayIP + " dev " + nodeName,
		} {
			if err := runCommand(ctx, "ip", strings.Fields(command)...); err != nil {
				return err
			}
		}
		// /proc/sys/net shows the values of the namespace of whoever looks: the machine's own are not touched.
		for name, required := range map[string]bool{
			"net/ipv4/ip_forward":                true,
			"net/ipv4/conf/all/route_localnet":   false,
			"net/bridge/bridge-nf-call-iptables": false,
		} {
			path := filepath.Join("/proc/sys", name)
			if err := os.WriteFile(path, []byte("1"), 0); err != nil && required { // #nosec G306 -- exists
				return fmt.Errorf("failed to set %s: %w", name, err)
			}
		}
		return nil
	})
}

// isNamespace tells a namespace from the empty file on which one was mounted.
func isNamespace(path string) bool {
	var stat unix.Statfs_t
	return unix.Statfs(path, &stat) == nil && stat.Type == unix.NSFS_MAGIC
}

// kernelTunables are what the kubelet insists on writing. They belong to the machine, so the node sees files instead.
var kernelTunables = map[string]string{
	"vm/overcommit_memory":      "1",
	"vm/panic_on_oom":           "0",
	"kernel/panic":              "10",
	"kernel/panic_on_oops":      "1",
	"kernel/keys/root_maxkeys":  "1000000",
	"kernel/keys/root_maxbytes": "25000000",
}

// createMounts makes the node's mount namespace.
func (l layout) createMounts() error {
	for _, dir := range []string{
		l.state("lib", "kubelet"), l.state("lib", "cni"), l.state("lib", "etcd"), l.state("lib", "registry"),
		l.logs("pods"), l.state("config"),
		l.nodeRun("cluster"), l.nodeRun("bin"), l.nodeRun("lib"), l.nodeRun("log"), l.nodeRun("lock"), l.nodeRun("netns"),
	} {
		if err := os.MkdirAll(dir, 0o755); err != nil { // #nosec G301 -- unprivileged containers read below
			return fmt.Errorf("failed to make %s: %w", dir, err)
		}
	}
	return keepNamespace(l.mountns(), "mnt", unix.CLONE_NEWNS, l.arrangeMounts)
}

// arrangeMounts gives the calling thread the node's view of the file system.
func (l layout) arrangeMounts() error {
	if err := mount("", "/", unix.MS_REC|unix.MS_PRIVATE); err != nil {
		return err
	}
	for _, bind := range [][2]string{
		{l.state(), l.nodeRun("cluster")},
		{l.bin(""), l.nodeRun("bin")},
		{l.state("lib"), l.nodeRun("lib")},
		{l.logs(), l.nodeRun("log")},
	} {
		if err := mount(bind[0], bind[1], unix.MS_BIND); err != nil {
			return err
		}
	}
	// Copies of the machine's mounts (namespaces, containers) would keep these alive after their owner dropped them.
	mounts, err := readMounts()
	if err != nil {
		return err
	}
	for _, m := range mounts {
		if isBelow(m, l.run()) || m == l.run() {
			continue
		}
		if isBelow(m, "/run") || isBelow(m, "/var/run") || isBelow(m, "/var/lib") || isBelow(m, "/var/log") {
			_ = unix.Unmount(m, unix.MNT_DETACH)
		}
	}
	for _, bind := range [][2]string{{l.nodeRun(), "/run"}, {"/run/lib", "/var/lib"}, {"/run/log", "/var/log"}} {
		if err := mount(bind[0], bind[1], unix.MS_BIND|unix.MS_REC); err != nil {
			return err
		}
	}
	for name, value := range kernelTunables {
		target := filepath.Join("/proc/sys", name)
		if _, err := os.Stat(target); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		file := filepath.Join(nodeStateDir, "sys", name)
		if err := writeFile(file, []byte(value+"\n"), 0o644); err != nil {
			return err
		}
		if err := mount(file, target, unix.MS_BIND); err != nil {
			return err
		}
	}
	// Volumes of Pods with mount propagation work among themselves, not towards the machine.
	return mount("", "/", unix.MS_REC|unix.MS_SHARED)
}

func mount(source, target string, flags uintptr) error {
	if err := unix.Mount(source, target, "", flags, ""); err != nil {
		return fmt.Errorf("failed to mount %s: %w", target, err)
	}
	return nil
}

// isBelow reports whether path is inside of dir.
func isBelow(path, dir string) bool { return strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/") }

// readMounts returns the mount points of the calling thread, the newest first, so that they can be unmounted in order.
func readMounts() ([]string, error) {
	data, err := os.ReadFile("/proc/thread-self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("failed to read the mounts: %w", err)
	}
	return parseMountPoints(string(data)), nil
}

// supportsOverlay tries whether overlay mounts work where containerd keeps its data.
func (l layout) supportsOverlay() bool {
	dir := l.state("overlay-test")
	defer func() { _ = os.RemoveAll(dir) }()
	for _, name := range []string{"lower", "upper", "work", "merged"} {
		if os.MkdirAll(filepath.Join(dir, name), 0o700) != nil {
			return false
		}
	}
	merged := filepath.Join(dir, "merged")
	options := fmt.Sprintf("lowerdir=%[1]s/lower,upperdir=%[1]s/upper,workdir=%[1]s/work", dir)
	if unix.Mount("overlay", merged, "overlay", 0, options) != nil {
		return false
	}
	defer func() { _ = unix.Unmount(merged, unix.MNT_DETACH) }()
	return os.WriteFile(filepath.Join(merged, "file"), nil, 0o600) == nil
}

// runCommand runs a short command; what it wrote is part of the error.
func runCommand(ctx context.Context, name string, args ...string) error {
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	out, err := exec.CommandContext(ctx, name, args...).CombinedOutput() // #nosec G204 -- fixed commands
	if err != nil {
		return fmt.Errorf("failed to run %s %s: %w: %s", name, strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}
