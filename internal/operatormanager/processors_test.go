package operatormanager

import (
	"runtime"
	"testing"
)

// TestLimitProcessors verifies that Go uses one processor, and two while the caches are filled,
// unless GOMAXPROCS is set.
func TestLimitProcessors(t *testing.T) {
	before := runtime.GOMAXPROCS(3)
	t.Cleanup(func() {
		limitsProcessors.Store(false)
		areFilled.Store(false)
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
		areFilled.Store(false)
		filling := 0
		FillCaches(func() {
			if areFilled.Load() {
				t.Errorf("%s: the caches are full before they are filled", test.name)
			}
			filling = runtime.GOMAXPROCS(0)
		})
		if usual := runtime.GOMAXPROCS(0); filling != test.filling || usual != test.usual || !areFilled.Load() {
			t.Errorf("%s: %d processors while the caches are filled, then %d, want %d and %d", test.name, filling, usual, test.filling, test.usual)
		}
	}
}
