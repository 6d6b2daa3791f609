//go:build !race

package boundstest

const slower, larger = 1, 1
