package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/example/nginx-operator/test/cluster/internal/host"
	"github.com/example/nginx-operator/test/cluster/internal/layout"
)

// inNetwork runs f on a thread in the cluster's network namespace. Processes and sockets that f
// creates stay there.
func (n *Node) inNetwork(f func() error) error {
	return onOwnThread(func() error {
		if err := setns(n.NetNS(), unix.CLONE_NEWNET); err != nil {
			return err
		}
		return f()
	})
}

// inNode runs f on a thread in both namespaces of the node, with the node's paths.
func (n *Node) inNode(f func() error) error {
	return onOwnThread(func() error {
		if err := setns(n.NetNS(), unix.CLONE_NEWNET); err != nil {
			return err
		}
		// A thread cannot change its mount namespace while it shares its working directory with
		// others.
		if err := unix.Unshare(unix.CLONE_FS); err != nil {
			return fmt.Errorf("failed to detach the thread: %w", err)
		}
		if err := setns(n.MountNS(), unix.CLONE_NEWNS); err != nil {
			return err
		}
		return f()
	})
}

// onOwnThread runs f on a thread that ends with f, because no other goroutine may run on a thread
// with other namespaces.
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
	file, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("failed to open the namespace: %w", err)
	}
	defer func() { _ = file.Close() }()
	if err := unix.Setns(int(file.Fd()), kind); err != nil {
		return fmt.Errorf("failed to enter the namespace %s: %w", path, err)
	}
	return nil
}

// dial connects to an address in the cluster's network.
func (n *Node) dial(ctx context.Context, network, address string) (net.Conn, error) {
	var conn net.Conn
	err := n.inNetwork(func() error {
		var err error
		conn, err = new(net.Dialer).DialContext(ctx, network, address)
		return err
	})
	return conn, err
}

// createRun creates the cluster's directory in /run and makes it a private mount. A mount namespace
// can be mounted only on a private mount.
func (n *Node) createRun() error {
	if err := os.MkdirAll(n.RunDir(), 0o755); err != nil {
		return fmt.Errorf("failed to make %s: %w", n.RunDir(), err)
	}
	mounts, err := readMounts()
	if err != nil || slices.ContainsFunc(mounts, func(m mountPoint) bool { return m.path == n.RunDir() }) {
		return err
	}
	if err := mount(n.RunDir(), n.RunDir(), unix.MS_BIND); err != nil {
		return host.Unavailable("nothing can be mounted: %w", err)
	}
	return mount("", n.RunDir(), unix.MS_PRIVATE)
}

// keepNamespace creates a namespace, runs arrange in it, and mounts it at path, so that it
// persists. It does nothing if path already is a namespace.
func keepNamespace(path, kind string, flag int, arrange func() error) error {
	if isNamespace(path) {
		return nil
	}
	if err := host.WriteFile(path, nil, 0o600); err != nil {
		return err
	}
	ready, kept, done := make(chan int), make(chan error, 1), make(chan error, 1)
	go func() {
		done <- onOwnThread(func() error {
			if err := unix.Unshare(flag); err != nil {
				return host.Unavailable("no namespace (%s) can be made: %w", kind, err)
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

// createNetwork creates a network namespace without outside access. One end of a veth pair has the
// node's address, and the other end stays in the namespace, because some kernels have no dummy
// devices. Service addresses need the default route over this device.
func (n *Node) createNetwork(ctx context.Context) error {
	return keepNamespace(n.NetNS(), "net", unix.CLONE_NEWNET, func() error {
		for _, command := range []string{
			"link set lo up",
			"link add " + layout.NodeName + " type veth peer name " + layout.NodeName + "-peer",
			"link set " + layout.NodeName + "-peer up",
			"addr add " + layout.NodeIP + "/24 dev " + layout.NodeName,
			"link set " + layout.NodeName + " up",
			"route add default via " + layout.GatewayIP + " dev " + layout.NodeName,
		} {
			if err := host.Run(ctx, "ip", strings.Fields(command)...); err != nil {
				return err
			}
		}
		// /proc/sys/net shows the values of the caller's network namespace, so the machine's values
		// do not change.
		for name, required := range map[string]bool{
			"net/ipv4/ip_forward":                true,
			"net/ipv4/conf/all/route_localnet":   false,
			"net/bridge/bridge-nf-call-iptables": false,
		} {
			path := filepath.Join("/proc/sys", name)
			if err := os.WriteFile(path, []byte("1"), 0); err != nil && required {
				return fmt.Errorf("failed to set %s: %w", name, err)
			}
		}
		return nil
	})
}

// isNamespace reports whether a namespace is mounted at path. Otherwise path is an empty file or
// does not exist.
func isNamespace(path string) bool {
	var stat unix.Statfs_t
	return unix.Statfs(path, &stat) == nil && stat.Type == unix.NSFS_MAGIC
}

// kernelTunables are settings that the kubelet must write. They apply to the whole machine, so the
// node sees files instead.
var kernelTunables = map[string]string{
	"vm/overcommit_memory":      "1",
	"vm/panic_on_oom":           "0",
	"kernel/panic":              "10",
	"kernel/panic_on_oops":      "1",
	"kernel/keys/root_maxkeys":  "1000000",
	"kernel/keys/root_maxbytes": "25000000",
}

// createMounts creates the node's mount namespace.
func (n *Node) createMounts() error {
	for _, dir := range []string{
		n.State("lib", "kubelet"), n.State("lib", "cni"), n.State("lib", "etcd"), n.State("lib", "registry"),
		n.LogDir("pods"), n.Config(""),
		n.NodeRunDir("cluster"), n.NodeRunDir("bin"), n.NodeRunDir("lib"), n.NodeRunDir("log"), n.NodeRunDir("lock"), n.NodeRunDir("netns"),
	} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("failed to make %s: %w", dir, err)
		}
	}
	return keepNamespace(n.MountNS(), "mnt", unix.CLONE_NEWNS, n.arrangeMounts)
}

// bind is a directory of the clone and its path in the node, in /run.
type bind struct{ source, target string }

// binds returns the directories of the clone that the node uses.
func (n *Node) binds() []bind {
	return []bind{
		{n.State(), layout.NodeStateDir},
		{n.Bin(""), layout.NodeBinDir},
		{n.State("lib"), "/run/lib"},
		{n.LogDir(), "/run/log"},
	}
}

// arrangeMounts sets up the node's file system for the calling thread.
func (n *Node) arrangeMounts() error {
	if err := mount("", "/", unix.MS_REC|unix.MS_PRIVATE); err != nil {
		return err
	}
	for _, b := range n.binds() {
		if err := mount(b.source, n.NodeRunDir(filepath.Base(b.target)), unix.MS_BIND); err != nil {
			return err
		}
	}
	if n.Oldest {
		for _, name := range layout.KubernetesComponents {
			if err := mount(n.Bin(filepath.Join(layout.OldestKubernetes, name)), n.NodeRunDir("bin", name), unix.MS_BIND); err != nil {
				return err
			}
		}
	}
	// Copies of the machine's mounts (namespaces, containers) would keep them alive after their
	// owners unmount them.
	mounts, err := readMounts()
	if err != nil {
		return err
	}
	for _, m := range mounts {
		covered := slices.ContainsFunc([]string{"/run", "/var/run", "/var/lib", "/var/log"}, m.isBelow)
		if covered && m.path != n.RunDir() && !m.isBelow(n.RunDir()) {
			_ = unix.Unmount(m.path, unix.MNT_DETACH)
		}
	}
	for _, bind := range [][2]string{{n.NodeRunDir(), "/run"}, {"/run/lib", "/var/lib"}, {"/run/log", "/var/log"}} {
		if err := mount(bind[0], bind[1], unix.MS_BIND|unix.MS_REC); err != nil {
			return err
		}
	}
	for name, value := range kernelTunables {
		target := filepath.Join("/proc/sys", name)
		if _, err := os.Stat(target); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		file := filepath.Join(layout.NodeStateDir, "sys", name)
		if err := host.WriteFile(file, []byte(value+"\n"), 0o644); err != nil {
			return err
		}
		if err := mount(file, target, unix.MS_BIND); err != nil {
			return err
		}
	}
	// Mount propagation works between the volumes of Pods, but not to the machine.
	return mount("", "/", unix.MS_REC|unix.MS_SHARED)
}

func mount(source, target string, flags uintptr) error {
	if err := unix.Mount(source, target, "", flags, ""); err != nil {
		return fmt.Errorf("failed to mount %s: %w", target, err)
	}
	return nil
}

// readMounts returns the mounts of the calling thread, the latest first, so that they can be
// unmounted in order.
func readMounts() ([]mountPoint, error) {
	data, err := os.ReadFile("/proc/thread-self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("failed to read the mounts: %w", err)
	}
	return parseMounts(string(data)), nil
}

// SupportsOverlay reports whether overlay mounts work in the cluster's state directory.
func (n *Node) SupportsOverlay() bool {
	dir := n.State("overlay-test")
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
