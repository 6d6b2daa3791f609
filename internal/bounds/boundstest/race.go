//go:build race

package boundstest

// slower and larger are how many times longer everything takes with the race detector, and how much more is allocated: a sync.Pool
// forgets a part of what it is given then.
const slower, larger = 20, 8
