package node

import (
	"errors"
	"slices"
	"strconv"
	"strings"
)

// processStat is the state and the start time of a process. The start time differs if a process ID
// is reused.
type processStat struct {
	state byte
	start uint64
}

// parseStat parses /proc/PID/stat. The second field, the name, can contain spaces and parentheses.
func parseStat(data string) (processStat, error) {
	end := strings.LastIndexByte(data, ')')
	if end < 0 {
		return processStat{}, errors.New("failed to parse the state of a process: no name")
	}
	// The first field after the name is field 3. The start time is field 22.
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

// alive reports whether the process runs. A zombie does not run.
func (s processStat) alive() bool { return s.state != 'Z' && s.state != 'X' }

// processRecord identifies a process permanently. Process IDs are reused, and start times are
// relative to the boot.
type processRecord struct {
	PID   int    `json:"pid"`
	Start uint64 `json:"start"`
	Boot  string `json:"boot"`
}

// matches reports whether the recorded process still runs, given the process that now has its ID.
func (r processRecord) matches(boot string, stat processStat) bool {
	return r.PID > 0 && r.Boot == boot && r.Start == stat.start && stat.alive()
}

// mountPoint is a mount. Cgroups version 1 have one mount per controller.
type mountPoint struct{ path, fsType string }

// isBelow reports whether the mount is in dir.
func (m mountPoint) isBelow(dir string) bool { return strings.HasPrefix(m.path, dir+"/") }

// parseMounts parses /proc/PID/mountinfo and returns the mounts, the latest first.
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

// unescapeMount decodes the kernel's octal escapes for whitespace and backslashes.
func unescapeMount(path string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(path)
}

// inCgroup parses /proc/PID/cgroup and reports whether the process is in the named cgroup or in one
// of its children.
func inCgroup(data, name string) bool {
	for line := range strings.Lines(data) {
		// The fields are the hierarchy, its controllers, and the path. The path can contain colons.
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) == 3 && strings.Contains(fields[2]+"/", "/"+name+"/") {
			return true
		}
	}
	return false
}
