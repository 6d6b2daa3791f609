package fleet

import (
	"context"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// Gate lets instances begin. Each operation takes the same time however many instances there are. Make it with New.
type Gate struct {
	bound   intstr.IntOrString
	changed chan struct{}

	mu sync.Mutex
	// listed: unseen has every object that was there when this process began and was not reconciled yet.
	listed bool
	all    sets.Set[types.NamespacedName]
	unseen sets.Set[types.NamespacedName]
	// members are the instances that are not Outside.
	members                  map[types.NamespacedName]member
	waiting                  [WaitingUnready + 1]sets.Set[types.NamespacedName]
	failed                   sets.Set[types.NamespacedName]
	rolling, rollingCanaries int
	queue                    workqueue.TypedRateLimitingInterface[reconcile.Request]
}

// member is what is known of an instance that takes part.
type member struct {
	place  Place
	canary bool
	// unproven: it did not serve when it began, so its failure does not count.
	unproven bool
}

// New returns a Gate that lets so many instances roll at a time.
func New(bound intstr.IntOrString) *Gate {
	g := &Gate{
		bound: bound, changed: make(chan struct{}, 1), members: map[types.NamespacedName]member{},
		all: sets.New[types.NamespacedName](), unseen: sets.New[types.NamespacedName](), failed: sets.New[types.NamespacedName](),
	}
	for group := range g.waiting {
		g.waiting[group] = sets.New[types.NamespacedName]()
	}
	return g
}

// Source makes the requests of a controller for instances whose turn has come.
func (g *Gate) Source() source.Source {
	return source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.queue = queue
		return nil
	})
}

// Listed tells which objects there are. Before that, and before each of them was seen, nothing begins: what is missing may be on its way
// or have failed.
func (g *Gate) Listed(objects []types.NamespacedName) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, object := range objects {
		if !g.all.Has(object) {
			g.unseen.Insert(object)
			g.all.Insert(object)
		}
	}
	g.listed = true
	g.admit(types.NamespacedName{})
}

// Ask reports whether an instance that waits may begin now. It will be reconciled again when its turn comes.
func (g *Gate) Ask(object types.NamespacedName, group Place) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.see(object)
	if g.members[object].place == Rolling && g.isMember(object) {
		return true
	}
	g.set(object, member{place: group, canary: group == WaitingCanary})
	g.admit(object)
	return g.members[object].place == Rolling
}

// Report tells where an instance is after a reconcile.
func (g *Gate) Report(object types.NamespacedName, place Place, canary bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.see(object)
	before := g.members[object]
	if g.isMember(object) && before.place == Rolling && place.waits() {
		return // its turn has come, and the reconcile that begins it is on its way
	}
	g.set(object, member{place: place, canary: canary, unproven: before.unproven && g.isMember(object)})
	g.admit(types.NamespacedName{})
}

// Seen tells that a reconcile of an object came to no result.
func (g *Gate) Seen(object types.NamespacedName) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.see(object)
	g.admit(types.NamespacedName{})
}

// Forget drops an object that is gone, or has no Pods that could roll.
func (g *Gate) Forget(object types.NamespacedName) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.set(object, member{place: Outside})
	g.all.Delete(object)
	g.unseen.Delete(object)
	g.admit(types.NamespacedName{})
}

// Counts returns the counts.
func (g *Gate) Counts() Counts {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.counts()
}

// maxNamed is how many instances a message names.
const maxNamed = 3

// Stopping names some of the instances that stop the rollout.
func (g *Gate) Stopping() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	names := make([]string, 0, len(g.failed))
	for object := range g.failed {
		names = append(names, object.String())
	}
	slices.Sort(names)
	if len(names) > maxNamed {
		names = append(names[:maxNamed], "others")
	}
	return strings.Join(names, ", ")
}

// The functions below are called with the lock.

func (g *Gate) counts() Counts {
	out := Counts{
		All: len(g.all), Unseen: len(g.unseen), Canaries: len(g.waiting[WaitingCanary]), Ready: len(g.waiting[Waiting]),
		Unready: len(g.waiting[WaitingUnready]), Rolling: g.rolling, RollingCanaries: g.rollingCanaries, Failed: len(g.failed),
	}
	if !g.listed {
		out.Unseen++
	}
	return out
}

func (g *Gate) see(object types.NamespacedName) {
	g.all.Insert(object)
	g.unseen.Delete(object)
}

func (g *Gate) isMember(object types.NamespacedName) bool {
	_, found := g.members[object]
	return found
}

// set moves an instance to another place.
func (g *Gate) set(object types.NamespacedName, now member) {
	if before, found := g.members[object]; found {
		g.count(object, before, false)
		delete(g.members, object)
	}
	if now.place != Outside {
		g.members[object] = now
		g.count(object, now, true)
	}
	select {
	case g.changed <- struct{}{}:
	default:
	}
}

func (g *Gate) count(object types.NamespacedName, of member, in bool) {
	move, step := sets.Set[types.NamespacedName].Delete, -1
	if in {
		move, step = sets.Set[types.NamespacedName].Insert, 1
	}
	switch {
	case of.place.waits():
		move(g.waiting[of.place], object)
	case of.place == Rolling:
		g.rolling += step
		if of.canary {
			g.rollingCanaries += step
		}
	case of.place == Failed && !of.unproven:
		move(g.failed, object)
	}
}

// admit lets as many begin as may, and has them reconciled, but for the one that asks.
func (g *Gate) admit(asking types.NamespacedName) {
	group, instances := g.counts().Next(g.bound)
	for ; instances > 0; instances-- {
		next, found := g.pick(group, asking)
		if !found {
			return
		}
		g.set(next, member{place: Rolling, canary: group == WaitingCanary, unproven: group == WaitingUnready})
		if next != asking && g.queue != nil {
			g.queue.Add(reconcile.Request{NamespacedName: next})
		}
	}
}

// pick returns an instance of a group: any, so that no namespace is always the first or the last.
func (g *Gate) pick(group Place, asking types.NamespacedName) (types.NamespacedName, bool) {
	if g.waiting[group].Has(asking) {
		return asking, true
	}
	for object := range g.waiting[group] {
		return object, true
	}
	return types.NamespacedName{}, false
}
