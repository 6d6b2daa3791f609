// Package cost measures the time and memory of work on input whose size users control, alone and in
// parallel.
package cost

import (
	"fmt"
	"maps"
	"os"
	"runtime/debug"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/example/nginx-operator/pkg/bounds/boundstest"
	"github.com/example/nginx-operator/test/harness"
)

const (
	maxTime   = boundstest.MaxTime
	maxMemory = boundstest.MaxMemory >> 20 // MiB
	// atOnce is the number of parallel runs of one case.
	atOnce = 10
	// rounds is the number of measurements of each case. The minimum counts, because the rest is
	// noise of the machine.
	rounds = 3
)

// Case prepares the input, which is not measured, and returns the work to measure.
type Case func() (work func())

// Of returns a Case without preparation, for work that does not change its input.
func Of(work func()) Case { return func() func() { return work } }

// usage is the CPU time of one run, and the memory growth of the process during the run in MiB.
type usage struct {
	time   time.Duration
	memory float64
}

// Check measures each case alone and ten times in parallel, and reports the maximum of all cases.
// The test fails if a run takes 200 ms of CPU time or 64 MiB, or more.
func Check(t *testing.T, what string, cases map[string]Case) {
	t.Helper()
	// Collect garbage often, so that the measurement shows the memory that the input requires.
	defer debug.SetGCPercent(debug.SetGCPercent(30))
	for _, way := range []struct {
		name  string
		count int
	}{{"alone", 1}, {"side-by-side", atOnce}} {
		var most usage
		for _, name := range slices.Sorted(maps.Keys(cases)) {
			each := least(t, cases[name], way.count)
			t.Logf("%s, %s, %s: %s, %.1f MiB", what, name, way.name, each.time.Round(time.Millisecond), each.memory)
			if each.time >= maxTime || each.memory >= maxMemory {
				t.Errorf("%s, %s, %s: takes %s and %.1f MiB, less than %s and %d MiB are allowed",
					what, name, way.name, each.time, each.memory, maxTime, maxMemory)
			}
			most.time, most.memory = max(most.time, each.time), max(most.memory, each.memory)
		}
		metric := fmt.Sprintf("worst-%s-%s", what, way.name)
		harness.Report(metric+"-time", harness.Round(most.time.Seconds()*1000), fmt.Sprintf("ms each (under %d)", maxTime.Milliseconds()))
		harness.Report(metric+"-memory", harness.Round(most.memory), fmt.Sprintf("MiB each (under %d)", maxMemory))
	}
}

// least returns the minimum of several measurements with count parallel runs, per run.
func least(t *testing.T, prepare Case, count int) usage {
	t.Helper()
	out := usage{time.Hour, 1 << 20}
	for range rounds {
		one, err := measure(prepare, count)
		if err != nil {
			t.Fatal(err)
		}
		out.time, out.memory = min(out.time, one.time), min(out.memory, one.memory)
	}
	return out
}

func measure(prepare Case, count int) (usage, error) {
	works := make([]func(), count)
	for i := range works {
		works[i] = prepare()
	}
	debug.FreeOSMemory()
	const forgetPeak = "5"
	if err := os.WriteFile("/proc/self/clear_refs", []byte(forgetPeak), 0); err != nil {
		return usage{}, fmt.Errorf("failed to have the kernel measure the memory again: %w", err)
	}
	memoryBefore, _, err := harness.Memory(os.Getpid())
	if err != nil {
		return usage{}, err
	}
	timeBefore, err := boundstest.ProcessorTime()
	if err != nil {
		return usage{}, err
	}
	var done sync.WaitGroup
	for _, work := range works {
		done.Go(work)
	}
	done.Wait()
	timeAfter, err := boundstest.ProcessorTime()
	if err != nil {
		return usage{}, err
	}
	_, most, err := harness.Memory(os.Getpid())
	return usage{(timeAfter - timeBefore) / time.Duration(count), (most - memoryBefore) / float64(count)}, err
}
