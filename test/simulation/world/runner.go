package world

import (
	"fmt"
	globalrand "math/rand"
	"math/rand/v2"
	"net/http"
	"slices"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/example/nginx-operator/test/simulation/check"
	"github.com/example/nginx-operator/test/simulation/kube"
	"github.com/example/nginx-operator/test/simulation/storage"
)

// latency is the duration of each request.
const latency = time.Millisecond

// World is a cluster with an operator. Only one goroutine may use it, in a bubble of
// testing/synctest.
type World struct {
	Store   *storage.Store
	Kube    *kube.Kube
	Release Release
	Faults  Faults
	// Requests counts the requests of the operator. Writes counts the requests that write.
	Requests, Writes int
	// Released has the times at which another release started.
	Released []time.Time
	// ListDelay is the time between the list of the fleet's reporter and its use, in processes that
	// start from now on.
	ListDelay time.Duration
	// Certificates has the current certificates, by the name of the Secret.
	Certificates map[string]check.Certificate
	// NodePorts has the node ports of foreign Services, with the time at which each was released,
	// or zero if it is still allocated.
	NodePorts map[int32]time.Time
	// Inputs counts the changes of everything that the operator reads except specs, and its
	// releases.
	Inputs int
	// Problems has the writes of the operator to objects that it does not own.
	Problems []string
	// OnQuiet, if set, is called once after each activity, if nothing has happened for quietTime,
	// the operator's caches are current, and no request failed by chance recently.
	OnQuiet func()
	// Trace, if set, gets one line for each write and each fault. If TraceAll is set, it also gets
	// each read, each event, and each turn.
	Trace    func(string)
	TraceAll bool
	// Hold, if set, reports whether a request of the operator is not answered yet.
	Hold func(*storage.Request) bool
	// OldKind, if set, is the only kind of which a process that starts on an older view sees that
	// view.
	OldKind *storage.Resource
	// Events has the Events of the operator.
	Events eventLog

	operator *process
	random   *rand.Rand
	quiet    quiet
	audit    audit
	// seed is the seed of the world.
	seed uint64
	// starts has the starts of all processes.
	starts []startOf
	// refusedUntil is the time at which the operator has retried all refused writes of children
	// that Pods depend on.
	refusedUntil time.Time
	// crashView is the resource version that the next process sees at its start, or -1 for the
	// newest. It is 0 if the operator has not crashed.
	crashView int64
}

// startOf is the start of a process. podsView is the resource version of an older view of the Pods
// or of their ReplicaSets, or 0 if the process sees the newest.
type startOf struct {
	at       time.Time
	podsView int64
}

// New returns a world with one namespace and no operator. The seed determines all random numbers.
func New(release Release, seed uint64) *World {
	store := storage.New()
	w := &World{
		Store: store, Kube: kube.New(store), Release: release,
		Certificates: map[string]check.Certificate{}, NodePorts: map[int32]time.Time{}, audit: newAudit(),
		seed: seed, random: rand.New(rand.NewPCG(seed, 0)), //nolint:gosec // a simulation
	}
	w.Must(w.Create(&corev1.Namespace{ObjectMeta: objectMeta("", Namespace)}))
	return w
}

// Seed resets the random numbers, which from now on depend on a seed and the number of a step.
func (w *World) Seed(seed, step uint64) { w.random = rand.New(rand.NewPCG(seed, step)) } //nolint:gosec // a simulation

// Start starts the operator, if it is not running. Its first lists see the resource version view,
// or the newest if view is 0.
func (w *World) Start(view int64) {
	if w.operator != nil {
		return
	}
	// After Wait, the previous process draws no more random numbers.
	synctest.Wait()
	globalrand.Seed(int64(w.seed) + int64(len(w.starts))) //nolint:staticcheck,gosec // the jitter of libraries comes from there
	started, err := start(w.Release, view, w.ListDelay, &w.Events)
	w.Must(err)
	w.operator = started
	begun := startOf{at: time.Now()}
	if w.seesOld(storage.Pods) || w.seesOld(storage.ReplicaSets) {
		begun.podsView = view
	}
	w.starts = append(w.starts, begun)
}

// Stop ends the operator.
func (w *World) Stop() {
	if w.operator != nil {
		w.operator.kill(w.Store)
		w.operator = nil
	}
}

// Restart replaces the operator process. It starts the current Release of the world.
func (w *World) Restart(view int64) {
	w.Stop()
	w.Start(view)
}

// Must panics on an error that only a defect of the simulation can cause.
func (w *World) Must(err error) {
	if err != nil {
		panic(err)
	}
}

// Note writes a line to the trace.
func (w *World) Note(format string, args ...any) { w.trace(format, args...) }

func (w *World) trace(format string, args ...any) {
	if w.Trace != nil {
		w.Trace(fmt.Sprintf(format, args...))
	}
}

// Run advances the time by a duration.
func (w *World) Run(duration time.Duration) {
	end := time.Now().Add(duration)
	for {
		synctest.Wait()
		if w.proceed() {
			continue
		}
		if w.crashed() || w.serve() || w.deliver() || w.Kube.Tick() {
			w.quiet.acted()
			continue
		}
		w.checkQuiet()
		now := time.Now()
		if !now.Before(end) {
			return
		}
		w.pause(w.nextAt(end).Sub(now))
	}
}

// Until advances the time until a condition holds, and reports whether it holds before the timeout.
func (w *World) Until(timeout time.Duration, holds func() bool) bool {
	for end := time.Now().Add(timeout); !holds(); {
		if !time.Now().Before(end) {
			return false
		}
		w.Run(time.Second)
	}
	return true
}

// pause waits until the operator sends a request, or until a duration has passed.
func (w *World) pause(wait time.Duration) {
	var wake chan struct{}
	if w.operator != nil {
		wake = w.operator.wake
	}
	select {
	case <-wake:
	case <-time.After(max(wait, latency)):
	}
}

// nextAt returns the time of the next event, or end if that is earlier.
func (w *World) nextAt(end time.Time) time.Time {
	next := end
	earlier := func(at time.Time) {
		if !at.IsZero() && at.Before(next) {
			next = at
		}
	}
	earlier(w.Kube.Next())
	earlier(w.quiet.due())
	if w.operator == nil {
		return next
	}
	for _, watch := range w.operator.watches {
		if due, found := w.due(watch); found {
			earlier(due)
		}
	}
	return next
}

// serve answers one request of the operator, and reports whether there was one.
func (w *World) serve() bool {
	if w.operator == nil {
		return false
	}
	calls := w.operator.waiting()
	if w.Hold != nil {
		calls = slices.DeleteFunc(calls, func(c *call) bool { return w.Hold(c.Request) })
	}
	if len(calls) == 0 {
		return false
	}
	time.Sleep(latency)
	synctest.Wait() // for the timers of the operator that end at the same time
	next := calls[0]
	w.Requests++
	if next.IsWrite() {
		w.Writes++
	}
	before, fault := w.decide(next.Request)
	if fault.kill != 0 || fault.chance {
		w.quiet.disturbed()
	}
	if fault.kill == killBefore {
		w.trace("crash before %s", next.Request)
		w.crash(before)
		return true
	}
	if fault.err != nil && !fault.after {
		if slices.Contains(ordered, next.Resource) {
			w.refusedUntil = time.Now().Add(backOff)
		}
		w.trace("refuse %s: %v", next.Request, fault.err)
		w.operator.reply(next, failure(fault.err))
		return true
	}
	if w.seesOld(next.Resource) && time.Since(w.operator.started) < viewTime {
		next.View = w.operator.view
	}
	w.noteForeign(next.Request)
	response := w.Store.Serve(next.Request)
	if opened := storage.WatchOf(response); opened != nil {
		w.operator.watches = append(w.operator.watches, opened)
	}
	if next.IsWrite() || w.TraceAll {
		w.trace("%s: %d", next.Request, response.StatusCode)
	}
	switch {
	case fault.kill == killAfter:
		w.trace("crash after %s", next.Request)
		w.crash(before)
	case fault.err != nil:
		w.trace("lose the answer to %s", next.Request)
		w.operator.reply(next, failure(fault.err))
	default:
		w.operator.reply(next, response)
	}
	return true
}

// seesOld reports whether the operator started on an older view of a kind.
func (w *World) seesOld(of *storage.Resource) bool {
	return w.operator.view > 0 && (w.OldKind == nil || w.OldKind == of)
}

func failure(err error) *http.Response { return storage.Failure(err) }
