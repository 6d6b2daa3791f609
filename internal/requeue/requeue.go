// Package requeue has the times after which a reconcile is repeated although no event may start it.
package requeue

import "time"

const (
	// AfterConflict is the interval of retries while a name is taken, or a namespace is deleted.
	AfterConflict = 30 * time.Second
	// AfterVerdict is the interval of retries of a spec that the API server refuses as invalid.
	// Only another version of the API server may accept it.
	AfterVerdict = 10 * time.Minute
	// UntilObserved is the interval until the cache has the newest ReplicaSet.
	UntilObserved = time.Second
	// Soon is the delay of a reconcile that depends on the last write.
	Soon = time.Millisecond
)

// Soonest returns the shortest of some delays, of which 0 means none.
func Soonest(delays ...time.Duration) time.Duration {
	var soonest time.Duration
	for _, delay := range delays {
		if delay != 0 && (soonest == 0 || delay < soonest) {
			soonest = delay
		}
	}
	return soonest
}
