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

// LimitMemory sets the memory limit of the garbage collector to nine tenths of the container's
// memory limit, if the environment has that limit. It does nothing if GOMEMLIMIT is set.
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
	// smallHeap is the size in bytes up to which the heap can grow, but at most to twice its live
	// part, so a small heap is not collected all the time.
	smallHeap = 72 << 20
	// heapRoom is the minimum growth in bytes between two collections. Above largeHeap minus
	// heapRoom, the minimum decreases, and it is zero from largeHeap on.
	heapRoom  = 24 << 20
	largeHeap = 128 << 20
	// heapGrowth is the minimum growth in percent. Most of a large heap is the cache, and Go's
	// default of 100 would double it.
	heapGrowth = 12
	// leastHeap bounds GOGC to 100. The heap of a burst grows by GOGC until the next adjustment, and
	// a standby has almost no live heap.
	leastHeap = smallHeap / 2
)

// gcPercent returns the value of GOGC for a number of live bytes.
func gcPercent(live uint64) int {
	live = max(live, leastHeap)
	room := max(smallHeap-min(live, smallHeap), min(heapRoom, largeHeap-min(live, largeHeap)))
	return max(heapGrowth, int(100*room/live)) //nolint:gosec // at most 100
}

// PaceGC limits the growth of the heap after each collection. It does nothing if GOGC is set.
func PaceGC(lookup func(string) (string, bool)) {
	if _, set := lookup("GOGC"); !set {
		paceGC()
	}
}

// collected is never reachable, so its cleanup runs after the next collection. It contains a
// pointer, because small objects without pointers share memory with objects that can live longer.
type collected struct{ _ *collected }

func paceGC() {
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	debug.SetGCPercent(gcPercent(live[0].Value.Uint64()))
	runtime.AddCleanup(&collected{}, func(struct{}) { paceGC() }, struct{}{})
}
