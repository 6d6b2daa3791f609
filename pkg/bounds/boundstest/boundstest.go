//go:build unix

// Package boundstest limits the processor time and the memory that one object of a client can cost
// in a test.
package boundstest

import (
	"errors"
	"flag"
	"fmt"
	"runtime"
	"syscall"
	"testing"
	"time"
)

const (
	// MaxTime bounds the processor time for one object.
	MaxTime = 200 * time.Millisecond
	// MaxMemory bounds the allocations for one object, including garbage.
	MaxMemory = 64 << 20
	// MaxRequestMemory bounds the allocations for one request of a stranger, including garbage.
	MaxRequestMemory = 32 << 20
	// fuzzed is the slowdown by the fuzzer's coverage counters.
	fuzzed = 4
	// tries is the number of measurements, because the processor time includes other work of the
	// process.
	tries = 3
)

// Cheap fails the test if the function exceeds the bounds for one object.
func Cheap(t testing.TB, do func()) {
	t.Helper()
	within(t, MaxMemory*Larger, do)
}

// CheapRequest fails the test if the function exceeds the bounds for one request of a stranger.
func CheapRequest(t testing.TB, do func()) {
	t.Helper()
	within(t, MaxRequestMemory*Larger, do)
}

func within(t testing.TB, maxMemory uint64, do func()) {
	t.Helper()
	maxTime := MaxTime * slower
	if worker := flag.Lookup("test.fuzzworker"); worker != nil && worker.Value.String() == "true" {
		maxTime *= fuzzed
	}

	var took time.Duration
	var allocated uint64
	for range tries {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		start, startErr := ProcessorTime()
		do()
		end, endErr := ProcessorTime()
		runtime.ReadMemStats(&after)
		if err := errors.Join(startErr, endErr); err != nil {
			t.Fatal(err)
		}

		took, allocated = end-start, after.TotalAlloc-before.TotalAlloc
		if took <= maxTime && allocated <= maxMemory {
			return
		}
	}

	t.Errorf("took %s of a processor and %d MiB, where %s and %d MiB are the most",
		took, allocated>>20, maxTime, maxMemory>>20)
}

// ProcessorTime returns the processor time of this process, which excludes other processes.
func ProcessorTime() (time.Duration, error) {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0, fmt.Errorf("failed to read the processor time: %w", err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()), nil
}
