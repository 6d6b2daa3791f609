package operatormanager

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"strings"
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
	// smallHeap is the size in bytes up to which the heap can grow, so a small heap is not collected
	// all the time.
	smallHeap = 72 << 20
	// heapRoom is the minimum growth in bytes between two collections. Above largeHeap minus
	// heapRoom, the minimum decreases, and it is zero from largeHeap on.
	heapRoom  = 46 << 20
	largeHeap = 118 << 20
	// heapGrowth is the minimum growth in percent. Most of a large heap is the cache, and Go's
	// default of 100 would double it.
	heapGrowth = 12
	// maxGOGC bounds the growth of a heap that a burst of requests fills. The growth is relative to
	// what the last collection found alive, and is adjusted only after the next one.
	maxGOGC = 100
	// reserveSize is the size in bytes of the reserve, which GOGC counts as alive. Without it, a heap
	// of 10 MiB could only grow by 10 MiB, and a standby would collect all the time.
	reserveSize = 32 << 20
)

// gcPercent returns the value of GOGC for a number of live bytes, without the reserve.
func gcPercent(live uint64) int {
	room := max(smallHeap-min(live, smallHeap), min(heapRoom, largeHeap-min(live, largeHeap)), heapGrowth*live/100)
	return int(min(maxGOGC, 100*room/(live+reserveSize))) //nolint:gosec // at most maxGOGC
}

// PaceGC limits the growth of the heap after each collection. It does nothing if GOGC is set.
func PaceGC(lookup func(string) (string, bool)) {
	if _, set := lookup("GOGC"); set || reserve.Cap() > 0 {
		return
	}
	reserve.Grow(reserveSize)
	paceGC()
}

// reserve is never read or written, so the kernel provides no memory for it. Go clears a new slice if
// any of its addresses was in use before, and a cleared one takes memory. A Builder is not cleared.
var reserve strings.Builder

// collected is never reachable, so its cleanup runs after the next collection. It contains a
// pointer, because small objects without pointers share memory with objects that can live longer.
type collected struct{ _ *collected }

func paceGC() {
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	alive := live[0].Value.Uint64()
	debug.SetGCPercent(gcPercent(alive - min(alive, reserveSize)))
	runtime.AddCleanup(&collected{}, func(struct{}) { paceGC() }, struct{}{})
}
