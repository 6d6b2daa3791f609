// Package cost measures what work costs whose size others decide, alone and side by side.
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

	"github.com/example/nginx-operator/internal/bounds/boundstest"
	"github.com/example/nginx-operator/test/harness"
)

const (
	maxTime   = boundstest.MaxTime
	maxMemory = boundstest.MaxMemory >> 20 // MiB
	// atOnce is how many of one kind are worked on side by side.
	atOnce = 10
	// rounds is how often each measurement is made. The least counts: all else is the machine's.
	rounds = 3
)

// Case makes ready what is worked on, which is not measured, and returns the work.
type Case func() (work func())

// Of returns a case whose work changes nothing, so that there is nothing to make ready.
func Of(work func()) Case { return func() func() { return work } }

// usage is what one piece of work takes: processor time, and what the process grows by while it is done, in MiB.
type usage struct {
	time   time.Duration
	memory float64
}

// Check measures each case alone and ten times side by side, reports the most that any takes, and fails where one takes more than
// 200 ms of a processor or 64 MiB.
func Check(t *testing.T, what string, cases map[string]Case) {
	t.Helper()
	// Little garbage, so that what is measured is what the input takes.
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

// least returns the least of some measurements of so many pieces of work side by side, each.
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
