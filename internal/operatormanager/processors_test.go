package operatormanager

import (
	"bytes"
	"os"
	"runtime"
	"runtime/metrics"
	"testing"
)

// TestLimitProcessors verifies that Go uses one processor, and two while the caches are filled,
// unless GOMAXPROCS is set.
func TestLimitProcessors(t *testing.T) {
	before := runtime.GOMAXPROCS(3)
	t.Cleanup(func() {
		limitsProcessors.Store(false)
		runtime.GOMAXPROCS(before)
	})
	for _, test := range []struct {
		name           string
		isSet          bool
		filling, usual int
	}{
		{"GOMAXPROCS is set", true, 3, 3},
		{"GOMAXPROCS is not set", false, min(2, runtime.NumCPU()), 1},
	} {
		LimitProcessors(func(name string) (string, bool) { return "3", test.isSet && name == "GOMAXPROCS" })
		filling := 0
		FillCaches(func() { filling = runtime.GOMAXPROCS(0) })
		if usual := runtime.GOMAXPROCS(0); filling != test.filling || usual != test.usual {
			t.Errorf("%s: %d processors while the caches are filled, then %d, want %d and %d", test.name, filling, usual, test.filling, test.usual)
		}
	}
}

// leaveFree uses pages of memory and leaves them free.
func leaveFree(pages int) {
	objects := make([][]byte, pages)
	for i := range objects {
		objects[i] = bytes.Repeat([]byte("x"), os.Getpagesize())
	}
	runtime.KeepAlive(objects)
	runtime.GC()
}

// TestFillCachesReturnsMemory verifies that a replica returns free memory to the kernel before and after
// it fills its caches.
func TestFillCachesReturnsMemory(t *testing.T) {
	const size = 256 << 20
	free := func() uint64 {
		now := []metrics.Sample{{Name: "/memory/classes/heap/free:bytes"}}
		metrics.Read(now)
		return now[0].Value.Uint64()
	}
	leave := func() {
		leaveFree(size / os.Getpagesize())
		if now := free(); now < size/2 {
			t.Fatalf("%d bytes are free, want more to return", now)
		}
	}
	check := func(when string) {
		if now := free(); now > size/16 {
			t.Errorf("%s the caches are filled, %d bytes are free", when, now)
		}
	}
	leave()
	FillCaches(func() {
		check("before")
		leave()
	})
	check("after")
}
