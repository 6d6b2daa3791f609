package world

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/example/nginx-operator/test/simulation/storage"
)

const (
	// quietTime is the time without activity after which the cluster counts as quiet. It is longer
	// than all delays of the operator other than back-off.
	quietTime = 12 * time.Second
	// backOff is a few seconds longer than the maximum time until the operator retries a failed
	// request.
	backOff = 75 * time.Second
)

// quiet finds the moments at which nothing is in progress.
type quiet struct {
	// last is the time of the last activity. seen is true if there was a check since then.
	last time.Time
	seen bool
	// calm is the time at which the operator has retried all requests that failed by chance.
	calm time.Time
}

// acted records an activity.
func (q *quiet) acted() { q.last, q.seen = time.Now(), false }

// disturbed records that a request failed by chance.
func (q *quiet) disturbed() { q.calm = time.Now().Add(backOff) }

// due returns the time at which the cluster is quiet if nothing happens before. It returns zero if
// the check was done or is due now.
func (q *quiet) due() time.Time {
	at := q.last.Add(quietTime)
	if q.calm.After(at) {
		at = q.calm
	}
	if q.seen || !at.After(time.Now()) {
		return time.Time{}
	}
	return at
}

// checkQuiet calls OnQuiet if the cluster is quiet.
func (w *World) checkQuiet() {
	now := time.Now()
	if w.OnQuiet == nil || w.operator == nil || w.quiet.seen || now.Before(w.quiet.last.Add(quietTime)) || now.Before(w.quiet.calm) {
		return
	}
	for _, watch := range w.operator.watches {
		if _, waits := watch.Oldest(); waits && watch.Open() {
			return
		}
	}
	if w.operator.view > 0 && now.Before(w.operator.started.Add(viewTime+quietTime)) || !w.operator.isElected() {
		return
	}
	w.quiet.seen = true
	w.OnQuiet()
}

// noteForeign records a write of the operator to an existing object that no NginxOperator controls,
// unless it adopts an orphan.
func (w *World) noteForeign(request *storage.Request) {
	live := w.Store.Get(request.Key)
	if !request.IsWrite() || live == nil || request.Resource == storage.NginxOperators || request.Verb == "create" {
		return
	}
	owner := metav1.GetControllerOf(live.Meta())
	if owner == nil && adopts(request, live.Meta()) {
		return
	}
	if owner == nil || owner.Kind != storage.NginxOperators.Kind {
		w.Problems = append(w.Problems, fmt.Sprintf("the operator writes a foreign object: %s", request))
	}
}

// adopts reports whether a patch changes only the owner references of an object that has a record
// of the operator, and fails if the object has changed.
func adopts(request *storage.Request, live metav1.Object) bool {
	var patch map[string]map[string]any
	if request.Verb != "patch" || json.Unmarshal(request.Body, &patch) != nil {
		return false
	}
	fields := slices.Sorted(maps.Keys(patch["metadata"]))
	return len(patch) == 1 && slices.Equal(fields, []string{"ownerReferences", "resourceVersion"}) &&
		live.GetAnnotations()["operator.example.com/last-declared"] != ""
}
