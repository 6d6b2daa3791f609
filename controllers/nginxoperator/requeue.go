package nginxoperator

import "time"

// This file says when a reconcile is made again though no event may come.

// conflictRetry is how often a reconcile is repeated that waits for somebody else: an object with the name of a child, which
// is not watched, or the end of a namespace.
const conflictRetry = 30 * time.Second

// verdictRetry is how often the API server is asked again about a spec that it found invalid: only another API server takes it.
const verdictRetry = 10 * time.Minute

// observeRetry is when to look again at a rollout whose newest ReplicaSet is not in the cache yet.
const observeRetry = time.Second

// soon is when a reconcile is made again that has to see its own status.
const soon = time.Millisecond

// sooner returns the shorter of two times, of which 0 is none.
func sooner(a, b time.Duration) time.Duration {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}
