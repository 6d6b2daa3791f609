package harness

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// Memory returns the current and the peak resident memory of a process, in MiB.
func Memory(pid int) (now, most float64, err error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, 0, fmt.Errorf("failed to read the memory of a process: %w", err)
	}
	of := map[string]float64{}
	for line := range strings.Lines(string(status)) {
		if fields := strings.Fields(line); len(fields) == 3 && fields[2] == "kB" {
			kibibytes, err := strconv.ParseFloat(fields[1], 64)
			if err != nil {
				return 0, 0, fmt.Errorf("failed to read the memory of a process: %w", err)
			}
			of[fields[0]] = Round(kibibytes / 1024)
		}
	}
	return of["VmRSS:"], of["VmHWM:"], nil
}

// ProcessorTime returns the CPU time of a process so far, with a resolution of 10 ms.
func ProcessorTime(pid int) (time.Duration, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, fmt.Errorf("failed to read the time of a process: %w", err)
	}
	// The program name, in parentheses, is the only field that can contain spaces.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	const utime, stime, tick = 11, 12, 10 * time.Millisecond
	var sum time.Duration
	for _, field := range []int{utime, stime} {
		ticks, err := strconv.Atoi(fields[field])
		if err != nil {
			return 0, fmt.Errorf("failed to read the time of a process: %w", err)
		}
		sum += time.Duration(ticks) * tick
	}
	return sum, nil
}
