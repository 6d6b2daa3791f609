package main

// This file reads what /proc says about processes and mounts.

import (
	"errors"
	"slices"
	"strconv"
	"strings"
)

// processStat is what tells a process from a later one with the same id.
type processStat struct {
	state byte
	start uint64
}

// parseStat reads /proc/PID/stat, whose second field, the name, can contain spaces and brackets.
func parseStat(data string) (processStat, error) {
	end := strings.LastIndexByte(data, ')')
	if end < 0 {
		return processStat{}, errors.New("failed to parse the state of a process: no name")
	}
	// The first field after the name is number 3, the start time is number 22.
	fields := strings.Fields(data[end+1:])
	if len(fields) < 20 || len(fields[0]) != 1 {
		return processStat{}, errors.New("failed to parse the state of a process: too short")
	}
	start, err := strconv.ParseUint(fields[19], 10, 64)
	if err != nil {
		return processStat{}, errors.New("failed to parse the state of a process: no start time")
	}
	return processStat{state: fields[0][0], start: start}, nil
}

// alive tells a running process from one that ended and that nobody has collected yet.
func (s processStat) alive() bool { return s.state != 'Z' && s.state != 'X' }

// processRecord names a process for good: ids are used again, and start times count from the boot.
type processRecord struct {
	PID   int    `json:"pid"`
	Start uint64 `json:"start"`
	Boot  string `json:"boot"`
}

// matches reports whether the process that now has the recorded id is the recorded one and still runs.
func (r processRecord) matches(boot string, stat processStat) bool {
	return r.PID > 0 && r.Boot == boot && r.Start == stat.start && stat.alive()
}

// parseMountPoints reads /proc/PID/mountinfo and returns the mount points, the newest first.
func parseMountPoints(mountinfo string) []string {
	var points []string
	for line := range strings.Lines(mountinfo) {
		if fields := strings.Fields(line); len(fields) > 4 {
			points = append(points, unescapeMount(fields[4]))
		}
	}
	slices.Reverse(points)
	return points
}

// unescapeMount undoes the kernel's octal escapes for blanks and backslashes.
func unescapeMount(path string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(path)
}

// cgroupMount is one hierarchy: version 1 has one per controller.
type cgroupMount struct {
	path    string
	version int
}

// parseCgroupMounts reads /proc/PID/mountinfo.
func parseCgroupMounts(mountinfo string) []cgroupMount {
	var mounts []cgroupMount
	for line := range strings.Lines(mountinfo) {
		before, after, ok := strings.Cut(line, " - ")
		fields, kind := strings.Fields(before), strings.Fields(after)
		if !ok || len(fields) < 5 || len(kind) == 0 {
			continue
		}
		switch kind[0] {
		case "cgroup":
			mounts = append(mounts, cgroupMount{path: unescapeMount(fields[4]), version: 1})
		case "cgroup2":
			mounts = append(mounts, cgroupMount{path: unescapeMount(fields[4]), version: 2})
		}
	}
	return mounts
}

// inCgroup reads /proc/PID/cgroup and reports whether the process is in the cgroup of that name or below it.
func inCgroup(data, name string) bool {
	for line := range strings.Lines(data) {
		// The hierarchy, its controllers, the path, which can contain colons.
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) == 3 && strings.Contains(fields[2]+"/", "/"+name+"/") {
			return true
		}
	}
	return false
}
