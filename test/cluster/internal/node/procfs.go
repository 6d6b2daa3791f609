package node

import (
	"errors"
	"slices"
	"strconv"
	"strings"
)

// processStat identifies a process: a later one with the same id has another start time.
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

// alive reports whether a process runs; a zombie does not.
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

// mountPoint is a mount; version 1 of cgroups has one per controller.
type mountPoint struct{ path, fsType string }

// isBelow reports whether the mount is inside of dir.
func (m mountPoint) isBelow(dir string) bool { return strings.HasPrefix(m.path, dir+"/") }

// parseMounts reads /proc/PID/mountinfo and returns the mounts, the newest first.
func parseMounts(mountinfo string) []mountPoint {
	var mounts []mountPoint
	for line := range strings.Lines(mountinfo) {
		before, after, _ := strings.Cut(line, " - ")
		fields, kind := strings.Fields(before), strings.Fields(after)
		if len(fields) > 4 && len(kind) > 0 {
			mounts = append(mounts, mountPoint{path: unescapeMount(fields[4]), fsType: kind[0]})
		}
	}
	slices.Reverse(mounts)
	return mounts
}

// unescapeMount undoes the kernel's octal escapes for blanks and backslashes.
func unescapeMount(path string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(path)
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
