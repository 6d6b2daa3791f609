//go:build unix

// Package boundstest limits the processor time and the memory that one object of a client can cost
// in a test.
package boundstest

import (
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
	// tries is the number of measurements before a function counts as expensive, because the
	// processor time includes other work of the process.
	tries = 3
)

// Cheap fails the test if the function exceeds the bounds for one object.
func Cheap(t testing.TB, do func()) {
	t.Helper()
	within(t, MaxMemory, do)
}

// CheapRequest fails the test if the function exceeds the bounds for one request of a stranger.
func CheapRequest(t testing.TB, do func()) {
	t.Helper()
	within(t, MaxRequestMemory, do)
}

func within(t testing.TB, memory uint64, do func()) {
	t.Helper()
	maxTime := MaxTime * slower
	if worker := flag.Lookup("test.fuzzworker"); worker != nil && worker.Value.String() == "true" {
		maxTime *= fuzzed
	}
	took, allocated := time.Duration(0), uint64(0)
	for range tries {
		if took, allocated = measure(t, do); took <= maxTime && allocated <= memory*Larger {
			return
		}
	}
	t.Errorf("took %s of a processor and %d MiB, where %s and %d MiB are the most", took, allocated>>20, maxTime, memory*Larger>>20)
}

func measure(t testing.TB, do func()) (took time.Duration, allocated uint64) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	began, err := ProcessorTime()
	if err != nil {
		t.Fatal(err)
	}
	do()
	ended, err := ProcessorTime()
	if err != nil {
		t.Fatal(err)
	}
	took = ended - began
	runtime.ReadMemStats(&after)
	return took, after.TotalAlloc - before.TotalAlloc
}

// ProcessorTime returns the processor time of this process, which excludes other processes.
func ProcessorTime() (time.Duration, error) {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0, fmt.Errorf("failed to read the processor time: %w", err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()), nil
}
