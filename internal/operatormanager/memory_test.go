//go:build !race

package operatormanager

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strconv"
	"testing"
	"time"
)

func TestLimitMemory(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	t.Cleanup(func() { debug.SetMemoryLimit(before) })
	for name, test := range map[string]struct {
		env  map[string]string
		want int64
		err  bool
	}{
		"nothing":       {want: before},
		"empty":         {env: map[string]string{"CONTAINER_MEMORY_LIMIT": ""}, want: before},
		"512 MiB":       {env: map[string]string{"CONTAINER_MEMORY_LIMIT": "536870912"}, want: 536870912 / 10 * 9},
		"the user's":    {env: map[string]string{"CONTAINER_MEMORY_LIMIT": "536870912", "GOMEMLIMIT": "1GiB"}, want: before},
		"not in bytes":  {env: map[string]string{"CONTAINER_MEMORY_LIMIT": "512Mi"}, want: before, err: true},
		"less than one": {env: map[string]string{"CONTAINER_MEMORY_LIMIT": "-1"}, want: before, err: true},
	} {
		t.Run(name, func(t *testing.T) {
			debug.SetMemoryLimit(before)
			err := LimitMemory(func(name string) (string, bool) {
				value, set := test.env[name]
				return value, set
			})
			if got := debug.SetMemoryLimit(-1); got != test.want || (err != nil) != test.err {
				t.Errorf("limit %d, want %d; %v", got, test.want, err)
			}
		})
	}
}

// TestGCPercent verifies the growth of the heap before the next collection: to 72 MiB in total, then
// by 46 MiB up to 118 MiB in total, and by 12 percent if that is more. GOGC is at most 100, and counts
// the reserve as alive.
func TestGCPercent(t *testing.T) {
	for live, want := range map[uint64]int{0: 100, 8: 100, 20: 100, 24: 85, 48: 57, 72: 44, 76: 38, 96: 17, 112: 9, 200: 10, 368: 11} {
		if got := gcPercent(live << 20); got != want {
			t.Errorf("%d MiB: %d, want %d", live, got, want)
		}
	}
}

// resident returns the resident memory of this process in bytes.
func resident(t *testing.T) int {
	t.Helper()
	var all, pages int
	text, err := os.ReadFile("/proc/self/statm")
	if _, failed := fmt.Sscan(string(text), &all, &pages); err != nil || failed != nil {
		t.Fatal(err, failed)
	}
	return pages * os.Getpagesize()
}

// TestReserveTakesNoMemory verifies that the reserve takes no memory, wherever the heap of a new process
// has free memory when PaceGC is called. It calls itself in new processes, because a cleared reserve
// took memory in some of them only.
func TestReserveTakesNoMemory(t *testing.T) {
	const variable = "TEST_FREE_PAGES"
	if text, set := os.LookupEnv(variable); set {
		pages, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		leaveFree(pages)
		before := resident(t)
		PaceGC(func(string) (string, bool) { return "", false })
		if grown := resident(t) - before; grown > reserveSize/4 {
			t.Errorf("it takes %d bytes", grown)
		}
		return
	}
	for pages := 50; pages <= 1200; pages += 50 {
		again := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$") //nolint:gosec // this test
		again.Env = append(os.Environ(), variable+"="+strconv.Itoa(pages))
		if output, err := again.CombinedOutput(); err != nil {
			t.Errorf("%d pages: %v\n%s", pages, err, output)
		}
	}
}

// TestPaceGC verifies that each collection sets the limit of the heap until the next one, unless
// GOGC is set.
func TestPaceGC(t *testing.T) {
	const otherwise = 77
	percent := func() (now int) {
		now = debug.SetGCPercent(otherwise)
		debug.SetGCPercent(now)
		return now
	}
	before := debug.SetGCPercent(otherwise)
	t.Cleanup(func() { debug.SetGCPercent(before) })
	PaceGC(func(name string) (string, bool) { return "100", name == "GOGC" })
	runtime.GC()
	if now := percent(); now != otherwise {
		t.Errorf("GOGC is set and changed to %d", now)
	}
	PaceGC(func(string) (string, bool) { return "", false })
	held := make([]byte, 256<<20)
	for deadline := time.Now().Add(time.Minute); percent() != gcPercent(256<<20); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("with 256 MiB alive it is %d", percent())
		}
		runtime.GC()
	}
	runtime.KeepAlive(held)
}
