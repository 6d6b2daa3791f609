//go:build race

package boundstest

// slower is the slowdown by the race detector.
const slower = 20

// Larger is the factor of allocations with the race detector, because a sync.Pool then drops a part
// of its objects.
const Larger = 8
