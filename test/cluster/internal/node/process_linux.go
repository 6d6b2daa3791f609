package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/example/nginx-operator/test/cluster/internal/components"
	"github.com/example/nginx-operator/test/cluster/internal/host"
)

// maxLogSize is the size in bytes above which Start rotates a component's log.
const maxLogSize = 16 << 20

// logTailLines is the number of log lines in the error for a dead component.
const logTailLines = 30

// collecting makes the components collect garbage less often than by default, because a test
// cluster has few processors but enough memory. The limit is for components that retain much
// memory. Pods do not inherit these variables.
var collecting = []string{"GOGC=300", "GOMEMLIMIT=2GiB"}

// Start runs a component in the node. It outlives this program.
func (n *Node) Start(c components.Component) error {
	if info, err := os.Stat(n.Log(c.Name)); err == nil && info.Size() > maxLogSize {
		if err := os.Rename(n.Log(c.Name), n.Log(c.Name)+".old"); err != nil {
			return fmt.Errorf("failed to rotate the log of %s: %w", c.Name, err)
		}
	}
	file, err := os.OpenFile(n.Log(c.Name), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("failed to open the log of %s: %w", c.Name, err)
	}
	defer func() { _ = file.Close() }()
	cmd := exec.Command(c.Args[0], c.Args[1:]...)
	cmd.Dir = "/"
	cmd.Env = append([]string{"PATH=" + components.Path, "HOME=/root", "LANG=C.UTF-8"}, slices.Concat(collecting, c.Env)...)
	cmd.Stdout, cmd.Stderr = file, file
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := n.inNode(cmd.Start); err != nil {
		return fmt.Errorf("failed to start %s: %w", c.Name, err)
	}
	stat, err := readStat(cmd.Process.Pid)
	if err != nil {
		return err
	}
	// Reap the process if it ends while this program runs.
	go func() { _ = cmd.Wait() }()
	boot, err := bootID()
	if err != nil {
		return err
	}
	data, err := json.Marshal(processRecord{PID: cmd.Process.Pid, Start: stat.start, Boot: boot})
	if err != nil {
		return fmt.Errorf("failed to encode the record of %s: %w", c.Name, err)
	}
	return host.WriteFile(n.record(c.Name), data, 0o644)
}

func (n *Node) record(name string) string { return n.State("processes", name+".json") }

// PID returns the process ID of a component, or 0 if it does not run.
func (n *Node) PID(name string) (int, error) {
	data, err := os.ReadFile(n.record(name))
	if err != nil {
		return 0, ignoreNotExist(err)
	}
	var record processRecord
	if err := json.Unmarshal(data, &record); err != nil {
		return 0, fmt.Errorf("failed to read the record of %s: %w", name, err)
	}
	boot, err := bootID()
	if err != nil {
		return 0, err
	}
	stat, err := readStat(record.PID)
	if err != nil {
		return 0, ignoreNotExist(err)
	}
	if !record.matches(boot, stat) {
		return 0, nil
	}
	return record.PID, nil
}

// WasStarted reports whether a component was started before. If it does not run now, it died.
func (n *Node) WasStarted(name string) bool {
	_, err := os.Stat(n.record(name))
	return err == nil
}

// LogTail returns the last lines of a component's log.
func (n *Node) LogTail(name string) string {
	data, err := os.ReadFile(n.Log(name))
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimRight(string(data), "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-logTailLines):], "\n")
}

// DiedError is the error for a component that ended.
type DiedError struct{ name, log, tail string }

func (e DiedError) Error() string {
	return fmt.Sprintf("%s died; the end of %s:\n%s", e.name, e.log, e.tail)
}

// Died returns the error for a component that no longer runs.
func (n *Node) Died(name string) error {
	return DiedError{name: name, log: n.Log(name), tail: n.LogTail(name)}
}

func readStat(pid int) (processStat, error) {
	data, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		if errors.Is(err, unix.ESRCH) {
			err = fs.ErrNotExist
		}
		return processStat{}, fmt.Errorf("failed to read the state of process %d: %w", pid, err)
	}
	return parseStat(string(data))
}

func bootID() (string, error) {
	data, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", fmt.Errorf("failed to read the id of the boot: %w", err)
	}
	return strings.TrimSpace(string(data)), nil
}

// member is a process that belongs to the cluster.
type member struct {
	process *os.Process
	// pod is set for the containers of Pods.
	pod bool
}

// members returns the processes of the cluster: the processes in its network or mount namespace,
// and the processes in its cgroup (the containers of Pods). A handle refers to the same process
// even if the process ID is reused.
func (n *Node) members() ([]member, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("failed to list the processes: %w", err)
	}
	var found []member
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		// Get the handle before the check, so that the signal goes to the checked process.
		process, err := os.FindProcess(pid)
		if err != nil {
			continue
		}
		stat, err := readStat(pid)
		pod := n.isPod(pid)
		if err != nil || !stat.alive() || !pod && !sameNamespace(pid, "net", n.NetNS()) && !sameNamespace(pid, "mnt", n.MountNS()) {
			_ = process.Release()
			continue
		}
		found = append(found, member{process: process, pod: pod})
	}
	return found, nil
}

// isPod reports whether a process is in the cluster's cgroup.
func (n *Node) isPod(pid int) bool {
	data, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cgroup"))
	return err == nil && inCgroup(string(data), n.ID)
}

// sameNamespace reports whether a process is in the namespace that is mounted at path.
func sameNamespace(pid int, kind, path string) bool {
	kept, err := os.Stat(path)
	if err != nil || !isNamespace(path) {
		return false
	}
	own, err := os.Stat(fmt.Sprintf("/proc/%d/ns/%s", pid, kind))
	return err == nil && os.SameFile(kept, own)
}

// signal sends a signal to a component if it runs.
func (n *Node) signal(name string, signal os.Signal) error {
	pid, err := n.PID(name)
	if err != nil || pid == 0 {
		return err
	}
	process, err := os.FindProcess(pid)
	if err != nil {
		return fmt.Errorf("failed to find %s: %w", name, err)
	}
	// The process ID can be reused between the first check and the handle. Check again.
	if again, err := n.PID(name); err != nil || again != pid {
		return err
	}
	if err := process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("failed to stop %s: %w", name, err)
	}
	return nil
}

// stopAll ends every process of the cluster.
func (n *Node) stopAll(ctx context.Context) error {
	// First stop the components that would restart others.
	for _, name := range []string{components.Kubelet.Name, components.Containerd.Name} {
		if err := n.signal(name, unix.SIGKILL); err != nil {
			return err
		}
	}
	deadline := time.Now().Add(2 * time.Second)
	return host.Poll(ctx, 20*time.Second, 50*time.Millisecond, func(context.Context) error {
		members, err := n.members()
		if err != nil {
			return err
		}
		for _, m := range members {
			// Pods are killed at once. The other processes have time to write their data.
			signal := unix.SIGTERM
			if m.pod || time.Now().After(deadline) {
				signal = unix.SIGKILL
			}
			_ = m.process.Signal(signal)
			_ = m.process.Release()
		}
		if len(members) > 0 {
			return fmt.Errorf("%d processes still run", len(members))
		}
		return nil
	})
}
