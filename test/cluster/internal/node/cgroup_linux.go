package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/example/nginx-operator/test/cluster/internal/host"
)

// cgroupV1 and cgroupV2 are the file system types of the two cgroup versions.
const cgroupV1, cgroupV2 = "cgroup", "cgroup2"

// cgroups returns the cluster's directory in each cgroup hierarchy.
func (n *Node) cgroups() ([]mountPoint, error) {
	mounts, err := readMounts()
	mounts = slices.DeleteFunc(mounts, func(m mountPoint) bool { return m.fsType != cgroupV1 && m.fsType != cgroupV2 })
	for i := range mounts {
		mounts[i].path = filepath.Join(mounts[i].path, n.ID)
	}
	return mounts, err
}

// createCgroups creates the kubelet's cgroupRoot, which must exist before the kubelet starts.
func (n *Node) createCgroups() error {
	groups, err := n.cgroups()
	if err != nil {
		return err
	}
	if len(groups) == 0 {
		return host.Unavailable("there is no cgroup file system")
	}
	unified := !slices.ContainsFunc(groups, func(g mountPoint) bool { return g.fsType == cgroupV1 })
	for _, g := range groups {
		if g.fsType == cgroupV2 && !unified {
			continue // the version 1 hierarchies have the controllers
		}
		if err := os.MkdirAll(g.path, 0o755); err != nil {
			return host.Unavailable("no cgroup can be made: %w", err)
		}
		if g.fsType == cgroupV2 {
			if err := enableControllers(g.path); err != nil {
				return err
			}
			continue
		}
		for _, name := range []string{"cpuset.cpus", "cpuset.mems"} {
			// In a new cpuset, both are empty and no process can enter it.
			data, err := os.ReadFile(filepath.Join(filepath.Dir(g.path), name))
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return fmt.Errorf("failed to read %s: %w", name, err)
			}
			if err := os.WriteFile(filepath.Join(g.path, name), data, 0); err != nil {
				return fmt.Errorf("failed to write %s: %w", name, err)
			}
		}
	}
	return nil
}

// enableControllers enables the controllers that the kubelet needs for the cluster's cgroup and its
// children.
func enableControllers(path string) error {
	for _, dir := range []string{filepath.Dir(path), path} {
		available, err := os.ReadFile(filepath.Join(dir, "cgroup.controllers"))
		if err != nil {
			return fmt.Errorf("failed to read the cgroup controllers: %w", err)
		}
		for controller := range strings.FieldsSeq(string(available)) {
			file := filepath.Join(dir, "cgroup.subtree_control")
			err := os.WriteFile(file, []byte("+"+controller), 0)
			if err != nil && slices.Contains([]string{"cpu", "cpuset", "memory", "pids"}, controller) {
				return host.Unavailable("the cgroup controller %s cannot be used: %w", controller, err)
			}
		}
	}
	return nil
}

// removeCgroups removes the cluster's cgroups. It retries, because removal fails shortly after the
// last process in them ended.
func (n *Node) removeCgroups(ctx context.Context) error {
	groups, err := n.cgroups()
	if err != nil {
		return err
	}
	for _, g := range groups {
		err := host.Poll(ctx, 10*time.Second, 50*time.Millisecond, func(context.Context) error { return removeCgroup(g.path) })
		if err != nil {
			return fmt.Errorf("failed to remove the cgroup %s: %w", g.path, err)
		}
	}
	return nil
}

// removeCgroup removes a cgroup and its children, children first. The files in it cannot be
// removed, and disappear with the cgroup.
func removeCgroup(path string) error {
	entries, err := os.ReadDir(path)
	if err != nil {
		return ignoreNotExist(err)
	}
	for _, entry := range entries {
		if entry.IsDir() {
			if err := removeCgroup(filepath.Join(path, entry.Name())); err != nil {
				return err
			}
		}
	}
	return ignoreNotExist(os.Remove(path))
}

func ignoreNotExist(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
