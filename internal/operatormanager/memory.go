package operatormanager

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
)

// memoryLimitVariable has the container's memory limit in bytes (config/manager/manager.yaml).
const memoryLimitVariable = "CONTAINER_MEMORY_LIMIT"

// LimitMemory makes the garbage collector work harder before the container's memory limit is reached, at nine tenths of it, where
// the environment names that limit. GOMEMLIMIT has its way where it is set.
func LimitMemory(lookup func(string) (string, bool)) error {
	if _, set := lookup("GOMEMLIMIT"); set {
		return nil
	}
	text, set := lookup(memoryLimitVariable)
	if !set || text == "" {
		return nil
	}
	limit, err := strconv.ParseInt(text, 10, 64)
	if err != nil || limit <= 0 {
		return fmt.Errorf("%s has to be a number of bytes, and is %q", memoryLimitVariable, text)
	}
	debug.SetMemoryLimit(limit / 10 * 9)
	return nil
}

const (
	// smallHeap is up to how many bytes the heap grows in any case: a small one is not to be collected all the time.
	smallHeap = 72 << 20
	// heapRoom is by how many bytes it grows between two collections of garbage, up to largeHeap.
	heapRoom  = 24 << 20
	largeHeap = 128 << 20
	// heapGrowth is by how many percent it grows in any case. Most of a large heap is the cache, and Go's usual 100 would double it.
	heapGrowth = 12
	// leastHeap bounds GOGC, to which the size of the first heap is in proportion as well.
	leastHeap = 8 << 20
)

// gcPercent returns what GOGC is to be for so many bytes that are alive.
func gcPercent(live uint64) int {
	live = max(live, leastHeap)
	room := max(smallHeap-min(live, smallHeap), min(heapRoom, largeHeap-min(live, largeHeap)))
	return max(heapGrowth, int(100*room/live)) //nolint:gosec // at most 100*smallHeap/leastHeap
}

// PaceGC sets after each collection how far the heap may grow until the next. GOGC has its way where it is set.
func PaceGC(lookup func(string) (string, bool)) {
	if _, set := lookup("GOGC"); !set {
		paceGC()
	}
}

// collected is never reachable, so its cleanup runs after the next collection. It has a pointer: objects without one share memory
// with others that may live longer.
type collected struct{ _ *collected }

func paceGC() {
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	debug.SetGCPercent(gcPercent(live[0].Value.Uint64()))
	runtime.AddCleanup(&collected{}, func(struct{}) { paceGC() }, struct{}{})
}
