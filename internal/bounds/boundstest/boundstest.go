//go:build unix

// Package boundstest holds tests to what one object may cost, whatever somebody stored or posted: so much of a processor,
// and so much memory.
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
	// MaxTime is how long one object may keep a processor busy.
	MaxTime = 200 * time.Millisecond
	// MaxMemory is how much may be allocated for one object, garbage included.
	MaxMemory = 64 << 20
	// fuzzed is how many times longer everything takes while the fuzzer counts which code runs.
	fuzzed = 4
	// tries are made before something counts as dear: the processor time holds what else the process does.
	tries = 3
)

// Cheap fails the test where the function takes more than may be taken for one object.
func Cheap(t testing.TB, do func()) {
	t.Helper()
	maxTime := MaxTime * slower
	if worker := flag.Lookup("test.fuzzworker"); worker != nil && worker.Value.String() == "true" {
		maxTime *= fuzzed
	}
	took, allocated := time.Duration(0), uint64(0)
	for range tries {
		if took, allocated = measure(t, do); took <= maxTime && allocated <= MaxMemory*larger {
			return
		}
	}
	t.Errorf("took %s of a processor and %d MiB, where %s and %d MiB are the most", took, allocated>>20, maxTime, MaxMemory*larger>>20)
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

// ProcessorTime is what the process has used: it does not count what others do on the machine.
func ProcessorTime() (time.Duration, error) {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0, fmt.Errorf("failed to read the processor time: %w", err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()), nil
}
