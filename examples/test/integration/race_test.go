//go:build !bench

package integration

// race is how the manager is built: whoever measures it builds it as it is delivered.
const race = "-race=true"
