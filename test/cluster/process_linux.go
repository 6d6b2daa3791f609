package main

// This file starts the components, finds them again and stops them.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// maxLogSize is the size from which on a component's log is put aside at its next start.
const maxLogSize = 16 << 20

// logTailLines is how much of its log the error about a dead component quotes.
const logTailLines = 30

// start runs a component in the node, where it outlives this program.
func (l layout) start(c component) error {
	if info, err := os.Stat(l.log(c.name)); err == nil && info.Size() > maxLogSize {
		if err := os.Rename(l.log(c.name), l.log(c.name)+".old"); err != nil {
			return fmt.Errorf("failed to put the log of %s aside: %w", c.name, err)
		}
	}
	file, err := os.OpenFile(l.log(c.name), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644) // #nosec G302 G304 -- a log
	if err != nil {
		return fmt.Errorf("failed to open the log of %s: %w", c.name, err)
	}
	defer func() { _ = file.Close() }()
	cmd := exec.Command(c.args[0], c.args[1:]...) // #nosec G204 -- from the table of components
	cmd.Dir = "/"
	cmd.Env = append([]string{"PATH=" + nodePath, "HOME=/root", "LANG=C.UTF-8"}, c.env...)
	cmd.Stdout, cmd.Stderr = file, file
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := l.inNode(cmd.Start); err != nil {
		return fmt.Errorf("failed to start %s: %w", c.name, err)
	}
	stat, err := readStat(cmd.Process.Pid)
	if err != nil {
		return err
	}
	// Collect it should it end while this program runs.
	go func() { _ = cmd.Wait() }()
	boot, err := bootID()
	if err != nil {
		return err
	}
	data, err := json.Marshal(processRecord{PID: cmd.Process.Pid, Start: stat.start, Boot: boot})
	if err != nil {
		return fmt.Errorf("failed to encode the record of %s: %w", c.name, err)
	}
	return writeFile(l.record(c.name), data, 0o644)
}

func (l layout) record(name string) string { return l.state("processes", name+".json") }

// pid returns the process of a component, 0 when it does not run.
func (l layout) pid(name string) (int, error) {
	data, err := os.ReadFile(l.record(name))
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

// wasStarted tells a dead component from one that never ran.
func (l layout) wasStarted(name string) bool {
	_, err := os.Stat(l.record(name))
	return err == nil
}

// logTail returns the end of a component's log.
func (l layout) logTail(name string) string {
	data, err := os.ReadFile(l.log(name))
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimRight(string(data), "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-logTailLines):], "\n")
}

// diedError is the error about a component that ended.
type diedError struct{ name, log, tail string }

func (e diedError) Error() string {
	return fmt.Sprintf("%s died; the end of %s:\n%s", e.name, e.log, e.tail)
}

func (l layout) died(name string) error {
	return diedError{name: name, log: l.log(name), tail: l.logTail(name)}
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

// inodeOf identifies a namespace.
func inodeOf(path string) (device, inode uint64, err error) {
	var stat unix.Stat_t
	if err := unix.Stat(path, &stat); err != nil {
		return 0, 0, err
	}
	return stat.Dev, stat.Ino, nil //nolint:unconvert // Dev is narrower on some platforms
}

// member is a process that belongs to the cluster.
type member struct {
	process *os.Process
	// pod is set for the containers of Pods.
	pod bool
}

// members returns handles of everything that belongs to the cluster: what is in its network or mount namespace and what is
// in its cgroup (the containers of Pods). A handle stays with its process: an id that is used again is no danger.
func (l layout) members() ([]member, error) {
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
		// The handle first, the check second: what is checked is then what will get the signal.
		process, err := os.FindProcess(pid)
		if err != nil {
			continue
		}
		stat, err := readStat(pid)
		pod := l.isPod(pid)
		if err != nil || !stat.alive() || !pod && !sameNamespace(pid, "net", l.netns()) && !sameNamespace(pid, "mnt", l.mountns()) {
			_ = process.Release()
			continue
		}
		found = append(found, member{process: process, pod: pod})
	}
	return found, nil
}

// isPod reports whether a process is in the cluster's cgroup.
func (l layout) isPod(pid int) bool {
	data, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cgroup"))
	return err == nil && inCgroup(string(data), l.id)
}

// sameNamespace reports whether the process is in the namespace that is kept at path.
func sameNamespace(pid int, kind, path string) bool {
	if !isNamespace(path) {
		return false
	}
	device, inode, err := inodeOf(path)
	if err != nil {
		return false
	}
	d, i, err := inodeOf(fmt.Sprintf("/proc/%d/ns/%s", pid, kind))
	return err == nil && d == device && i == inode
}

// signal sends a signal to one component, if it runs.
func (l layout) signal(name string, signal os.Signal) error {
	pid, err := l.pid(name)
	if err != nil || pid == 0 {
		return err
	}
	process, err := os.FindProcess(pid)
	if err != nil {
		return fmt.Errorf("failed to find %s: %w", name, err)
	}
	// The record was checked before the handle existed; look again.
	if again, err := l.pid(name); err != nil || again != pid {
		return err
	}
	if err := process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("failed to stop %s: %w", name, err)
	}
	return nil
}

// stopAll ends every process of the cluster.
func (l layout) stopAll(ctx context.Context) error {
	// First those that would start something again.
	for _, name := range []string{kubeletComponent.name, containerdComponent.name} {
		if err := l.signal(name, unix.SIGKILL); err != nil {
			return err
		}
	}
	deadline := time.Now().Add(2 * time.Second)
	return poll(ctx, 20*time.Second, 50*time.Millisecond, func(context.Context) error {
		members, err := l.members()
		if err != nil {
			return err
		}
		for _, m := range members {
			// Nobody waits for the Pods, the rest may write what it has to.
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

// installSelf puts this program where the node finds it, for the case that it was not started from there (go run).
func (l layout) installSelf() error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("failed to find this program: %w", err)
	}
	if self, err = filepath.EvalSymlinks(self); err != nil || self == l.bin("cluster") {
		return err
	}
	data, err := os.ReadFile(self) // #nosec G304 -- this program
	if err != nil {
		return fmt.Errorf("failed to read this program: %w", err)
	}
	// Aside and renamed: a program that runs cannot be overwritten.
	aside := l.bin("cluster.new")
	if err := writeFile(aside, data, 0o755); err != nil { // #nosec G302 -- a program
		return err
	}
	if err := os.Rename(aside, l.bin("cluster")); err != nil {
		return fmt.Errorf("failed to install this program: %w", err)
	}
	return nil
}
