package fleet

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/btree"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Gate admits instances to the rollout. The cost of a report grows with the logarithm of the number
// of instances. As a source of a controller, it requests a reconcile of each instance that gets a
// slot while it waits. Create it with New.
type Gate struct {
	policy  Policy
	changed chan struct{}
	// listed is closed by the first call of Listed. From then on, unseen has each object that
	// existed when this process started and that was not reconciled yet.
	listed chan struct{}

	mu     sync.Mutex
	all    sets.Set[types.NamespacedName]
	unseen sets.Set[types.NamespacedName]
	// members has the instances that are not Outside, by place in order, and counted in state.
	members map[types.NamespacedName]member
	order   order
	state   State
	queue   workqueue.TypedRateLimitingInterface[reconcile.Request]
}

type member struct {
	place  Place
	canary bool
	// unproven means that it did not serve when it started, so its failure does not count.
	unproven bool
	// since is when it started, or when this process first saw it started.
	since time.Time
}

// New returns a Gate with a policy.
func New(policy Policy) *Gate {
	return &Gate{
		policy: policy, changed: make(chan struct{}, 1), listed: make(chan struct{}),
		all: sets.New[types.NamespacedName](), unseen: sets.New[types.NamespacedName](),
		members: map[types.NamespacedName]member{}, order: order{btree.NewG(degree, entry.before)}, state: newState(),
	}
}

// Start implements source.Source.
func (g *Gate) Start(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.queue = queue
	return nil
}

// WaitForSync implements source.SyncingSource. The controller starts its workers after Listed, so
// that no instance waits only because of that.
func (g *Gate) WaitForSync(ctx context.Context) error {
	select {
	case <-g.listed:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("failed to list the NginxOperators: %w", ctx.Err())
	}
}

// Listed sets the objects that existed a moment ago. The Gate admits no instance until it has seen
// all objects of the first list, because an unseen instance may have started or failed. A later
// list only ends the wait for objects that are gone: no reconcile follows for an object that is
// deleted between the list and the start of the watch.
func (g *Gate) Listed(objects []types.NamespacedName) {
	g.mu.Lock()
	defer g.mu.Unlock()
	existing := sets.New(objects...)
	if g.isListed() {
		gone := g.unseen.Difference(existing)
		g.unseen, g.all = g.unseen.Difference(gone), g.all.Difference(gone)
	} else {
		g.unseen = existing.Difference(g.all)
		g.all = g.all.Union(existing)
		close(g.listed)
	}

	g.admit(types.NamespacedName{})
}

// Ask reports whether a waiting instance may start now. If it may not, the Gate requests a
// reconcile of the instance when it gets a slot.
func (g *Gate) Ask(object types.NamespacedName, group Place) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.see(object)
	if !g.hasStarted(object) {
		g.set(object, member{place: group, canary: group == WaitingCanary})
		g.admit(object)
	}

	return g.hasStarted(object)
}

// Report sets the place of an instance after a reconcile. An Unknown place changes nothing.
func (g *Gate) Report(object types.NamespacedName, place Place, canary bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.see(object)
	before, isMember := g.members[object]
	switch {
	case place == Unknown:
	case place.Waits() && g.hasStarted(object): // the reconcile that starts it follows
	case place == Rolling && before.place == Overdue: // it still rolls without a slot
	default:
		since := before.since
		if !isMember || before.place.Waits() {
			since = time.Now()
		}
		g.set(object, member{place: place, canary: canary, unproven: before.unproven, since: since})
	}

	g.admit(types.NamespacedName{})
}

// Forget drops an object that is deleted, or that has no Pods to roll.
func (g *Gate) Forget(object types.NamespacedName) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.set(object, member{place: Outside})
	g.all.Delete(object)
	g.unseen.Delete(object)
	g.admit(types.NamespacedName{})
}

// Expire frees the slots of instances that have held them for SlotTime, and returns the instances.
func (g *Gate) Expire(now time.Time) []types.NamespacedName {
	g.mu.Lock()
	defer g.mu.Unlock()
	overdue := g.order.expired(now)
	for _, object := range overdue {
		late := g.members[object]
		late.place = Overdue
		g.set(object, late)
	}

	if len(overdue) > 0 {
		g.admit(types.NamespacedName{})
	}
	return overdue
}

func (g *Gate) look(alone holds, now time.Time) (Counts, verdict) {
	g.mu.Lock()
	defer g.mu.Unlock()
	state := g.update()
	return state.Sum, g.policy.verdict(state, some(g.order.failed()), alone, now)
}

func (g *Gate) waits() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.update().Unseen > 0
}

const maxNamed = 3

// some names the first of many objects, in a stable order.
func some(objects []types.NamespacedName) string {
	names := make([]string, 0, len(objects))
	for _, object := range objects {
		names = append(names, object.String())
	}
	return firstOf(names)
}

// firstOf names the first of many objects or namespaces, and sorts the argument.
func firstOf(names []string) string {
	slices.Sort(names)
	if len(names) > maxNamed {
		names = append(names[:maxNamed:maxNamed], "others")
	}
	return strings.Join(names, ", ")
}

// The caller of the functions below holds the lock.

func (g *Gate) isListed() bool {
	select {
	case <-g.listed:
		return true
	default:
		return false
	}
}

// update returns the state with the current numbers of all and of unseen instances.
func (g *Gate) update() *State {
	g.state.All, g.state.Unseen = len(g.all), len(g.unseen)
	if !g.isListed() {
		g.state.Unseen++
	}
	return &g.state
}

func (g *Gate) see(object types.NamespacedName) {
	g.all.Insert(object)
	g.unseen.Delete(object)
}

func (g *Gate) hasStarted(object types.NamespacedName) bool {
	place := g.members[object].place
	return place == Rolling || place == Overdue
}

func (g *Gate) set(object types.NamespacedName, instance member) {
	if before, isMember := g.members[object]; isMember {
		g.count(object, before, -1)
		delete(g.members, object)
	}
	if instance.place != Outside {
		g.members[object] = instance
		g.count(object, instance, 1)
	}
	select {
	case g.changed <- struct{}{}:
	default:
	}
}

func (g *Gate) count(object types.NamespacedName, instance member, step int) {
	if instance.place == Failed && instance.unproven {
		return
	}

	counts := g.state.Namespaces[object.Namespace]
	counts.add(instance, step)
	g.state.set(object.Namespace, counts)

	key := entry{place: instance.place, object: object}
	if instance.place == Rolling {
		key.since = instance.since
	}

	put(g.order.BTreeG, key, step)
}

// admit starts the instances that the policy allows, and requests reconciles of all but the asking.
func (g *Gate) admit(asking types.NamespacedName) {
	for {
		namespace, from := g.policy.Next(g.update())
		if from == Outside {
			return
		}

		next, exists := g.order.first(namespace, from)
		if g.members[asking].place == from && asking.Namespace == namespace {
			next = asking // it starts in this reconcile
		}
		if !exists {
			return
		}

		g.set(next, member{place: Rolling, canary: from == WaitingCanary, unproven: from == WaitingUnready, since: time.Now()})
		if next != asking && g.queue != nil {
			g.queue.Add(reconcile.Request{NamespacedName: next})
		}
	}
}
