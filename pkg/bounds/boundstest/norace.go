//go:build !race

package boundstest

const slower = 1

// Larger is the factor of allocations with the race detector.
const Larger = 1
