package operatormanager

import (
	"runtime"
	"runtime/debug"
	"sync/atomic"
)

// Values of GOMAXPROCS. An operator mostly waits for the API server. With two processors, Go wakes a
// thread for almost every answer and event, which costs more than what the thread does then. Lists of
// thousands of objects keep two of them busy.
const (
	usualProcessors   = 1
	fillingProcessors = 2
)

// limitsProcessors reports whether LimitProcessors has set GOMAXPROCS.
var limitsProcessors atomic.Bool

// LimitProcessors sets GOMAXPROCS to 1. It does nothing if the environment has GOMAXPROCS.
func LimitProcessors(lookup func(string) (string, bool)) {
	if _, set := lookup("GOMAXPROCS"); set {
		return
	}
	limitsProcessors.Store(true)
	runtime.GOMAXPROCS(usualProcessors)
}

// FillCaches calls a function that waits until the caches are full. Meanwhile, Go uses two
// processors. FillCaches returns free memory to the kernel, before it what the requests to a standby
// have left, and after it what the lists have left.
func FillCaches(wait func()) {
	debug.FreeOSMemory()
	if limitsProcessors.Load() {
		runtime.GOMAXPROCS(min(fillingProcessors, runtime.NumCPU()))
		defer runtime.GOMAXPROCS(usualProcessors)
	}
	wait()
	debug.FreeOSMemory()
}
