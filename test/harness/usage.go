package harness

import (
	"fmt"
	"time"

	"github.com/prometheus/procfs"
)

// Memory returns the current and the peak resident memory of a process, in MiB.
func Memory(pid int) (now, most float64, err error) {
	process, err := procfs.NewProc(pid)
	if err != nil {
		return 0, 0, fmt.Errorf("failed to read the memory of a process: %w", err)
	}
	status, err := process.NewStatus()
	if err != nil {
		return 0, 0, fmt.Errorf("failed to read the memory of a process: %w", err)
	}
	return Round(float64(status.VmRSS) / (1 << 20)), Round(float64(status.VmHWM) / (1 << 20)), nil
}

// ProcessorTime returns the CPU time of a process so far, with a resolution of 10 ms.
func ProcessorTime(pid int) (time.Duration, error) {
	process, err := procfs.NewProc(pid)
	if err != nil {
		return 0, fmt.Errorf("failed to read the time of a process: %w", err)
	}
	stat, err := process.Stat()
	if err != nil {
		return 0, fmt.Errorf("failed to read the time of a process: %w", err)
	}
	return time.Duration(stat.CPUTime() * float64(time.Second)), nil
}
