package main

// This file makes and removes the cgroup that holds every Pod of the cluster.

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
)

// cgroups returns the cluster's folder in every hierarchy.
func (l layout) cgroups() ([]cgroupMount, error) {
	data, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("failed to read the mounts: %w", err)
	}
	mounts := parseCgroupMounts(string(data))
	for i := range mounts {
		mounts[i].path = filepath.Join(mounts[i].path, l.id)
	}
	return mounts, nil
}

// createCgroups makes the kubelet's cgroupRoot, which the kubelet expects to be there.
func (l layout) createCgroups() error {
	groups, err := l.cgroups()
	if err != nil {
		return err
	}
	if len(groups) == 0 {
		return unavailable("there is no cgroup file system")
	}
	unified := !slices.ContainsFunc(groups, func(g cgroupMount) bool { return g.version == 1 })
	for _, g := range groups {
		if g.version == 2 && !unified {
			continue // the controllers are in the version 1 hierarchies
		}
		if err := os.MkdirAll(g.path, 0o755); err != nil { // #nosec G301 -- as all cgroups
			return unavailable("no cgroup can be made: %w", err)
		}
		if g.version == 2 {
			if err := enableControllers(g.path); err != nil {
				return err
			}
			continue
		}
		for _, name := range []string{"cpuset.cpus", "cpuset.mems"} {
			// In a new cpuset both are empty, and no process can enter it.
			data, err := os.ReadFile(filepath.Join(filepath.Dir(g.path), name)) // #nosec G304 -- cgroup file system
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return fmt.Errorf("failed to read %s: %w", name, err)
			}
			if err := os.WriteFile(filepath.Join(g.path, name), data, 0); err != nil { // #nosec G306 -- exists
				return fmt.Errorf("failed to write %s: %w", name, err)
			}
		}
	}
	return nil
}

// enableControllers lets the cluster's cgroup and its children use the controllers that the kubelet needs.
func enableControllers(path string) error {
	for _, dir := range []string{filepath.Dir(path), path} {
		available, err := os.ReadFile(filepath.Join(dir, "cgroup.controllers")) // #nosec G304 -- cgroup file system
		if err != nil {
			return fmt.Errorf("failed to read the cgroup controllers: %w", err)
		}
		for controller := range strings.FieldsSeq(string(available)) {
			file := filepath.Join(dir, "cgroup.subtree_control")
			err := os.WriteFile(file, []byte("+"+controller), 0) // #nosec G306 -- exists
			if err != nil && slices.Contains([]string{"cpu", "cpuset", "memory", "pids"}, controller) {
				return unavailable("the cgroup controller %s cannot be used: %w", controller, err)
			}
		}
	}
	return nil
}

// removeCgroups removes the cluster's cgroups, which works a moment after the last process in them ended.
func (l layout) removeCgroups(ctx context.Context) error {
	groups, err := l.cgroups()
	if err != nil {
		return err
	}
	for _, g := range groups {
		err := poll(ctx, 10*time.Second, 50*time.Millisecond, func(context.Context) error { return removeCgroup(g.path) })
		if err != nil {
			return fmt.Errorf("failed to remove the cgroup %s: %w", g.path, err)
		}
	}
	return nil
}

// removeCgroup removes a cgroup from the leaves up; the files in it cannot be removed and go with it.
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
