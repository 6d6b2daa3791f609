package controller

import (
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/example/nginx-operator/examples/sidecarset/sidecar"
)

// Ask returns the account of a SidecarSet, for the selector and the hashes that it has now. Pods that its selector does not
// select any more drop out, and come back with it.
func (t *Tally) Ask(name string, selector labels.Selector, hashes sidecar.Hashes) Counts {
	t.mu.Lock()
	defer t.mu.Unlock()
	set := t.sets[name]
	if set == nil {
		set = &setEntry{groups: map[sidecar.Hashes]*group{}}
		t.sets[name] = set
	}
	if set.selector == nil || !sameSelector(set.selector, selector) {
		t.selects(name, set, selector)
	}
	return set.counts(hashes)
}

// Forget drops the account of a SidecarSet that is no more. Its Pods still carry the sidecars and are known, should it come
// back.
func (t *Tally) Forget(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if set := t.sets[name]; set != nil {
		set.selector, set.groups, set.ready = nil, map[sidecar.Hashes]*group{}, 0
		t.forgetEmpty([]string{name})
	}
}

// selects counts the Pods of a SidecarSet again for another selector.
func (t *Tally) selects(name string, set *setEntry, selector labels.Selector) {
	set.selector, set.groups, set.ready = selector, map[sidecar.Hashes]*group{}, 0
	for _, key := range set.carriers.keys {
		pod := t.pods[key]
		set.count(key, pod, pod.carries[name])
	}
}

// sameSelector: all and nothing have the same text.
func sameSelector(a, b labels.Selector) bool {
	return a.String() == b.String() && a.Empty() == b.Empty()
}

func (s *setEntry) selected(pod *podEntry) bool {
	return s.selector != nil && s.selector.Matches(labels.Set(pod.labels))
}

func (s *setEntry) count(key types.NamespacedName, pod *podEntry, hashes sidecar.Hashes) {
	if !s.selected(pod) {
		return
	}
	if s.groups[hashes] == nil {
		s.groups[hashes] = &group{}
	}
	s.groups[hashes].of(pod).add(key)
	if pod.ready {
		s.ready++
	}
}

// uncount undoes count, with the same selector and the same Pod.
func (s *setEntry) uncount(key types.NamespacedName, pod *podEntry, hashes sidecar.Hashes) {
	if !s.selected(pod) {
		return
	}
	group := s.groups[hashes]
	group.of(pod).remove(key)
	if group.available.len()+group.unavailable.len() == 0 {
		delete(s.groups, hashes)
	}
	if pod.ready {
		s.ready--
	}
}

func (g *group) of(pod *podEntry) *podSet {
	if pod.available {
		return &g.available
	}
	return &g.unavailable
}

// counts sums up the groups; there is one for each declaration that Pods still carry.
func (s *setEntry) counts(now sidecar.Hashes) Counts {
	out := Counts{Ready: s.ready}
	var broken, healthy *types.NamespacedName // of those that could be updated
	var updatedWaiting, otherWaiting *types.NamespacedName
	for hashes, group := range s.groups {
		size := group.available.len() + group.unavailable.len()
		out.Matched += size
		switch {
		case hashes == now:
			out.Updated += size
			updatedWaiting = first(updatedWaiting, &group.unavailable)
			continue
		case hashes.WithoutImage != now.WithoutImage:
			out.NotUpdatable += size
		default:
			out.Outdated += size
			broken = first(broken, &group.unavailable)
			healthy = first(healthy, &group.available)
		}
		otherWaiting = first(otherWaiting, &group.unavailable)
	}
	// At most one Pod is away because of an update. A Pod that is not ready anyway loses nothing by it, and may be waiting
	// for nothing but the new image; but it is taken only when no updated one is in trouble, which could be due to that
	// image.
	switch {
	case out.Outdated == 0:
	case updatedWaiting != nil:
		out.Waiting = updatedWaiting
	case broken != nil:
		out.Next = broken
	case otherWaiting != nil:
		out.Waiting = otherWaiting
	default:
		out.Next = healthy
	}
	return out
}

// first returns what is there, else a Pod of the set, else nil.
func first(found *types.NamespacedName, pods *podSet) *types.NamespacedName {
	if found != nil || pods.len() == 0 {
		return found
	}
	key := pods.keys[len(pods.keys)-1]
	return &key
}

// podSet is a set of Pods in which one can be added, removed and picked without looking at the others. The zero value is
// empty.
type podSet struct {
	keys []types.NamespacedName
	at   map[types.NamespacedName]int
}

func (s *podSet) len() int { return len(s.keys) }

func (s *podSet) add(key types.NamespacedName) {
	if _, found := s.at[key]; found {
		return
	}
	if s.at == nil {
		s.at = map[types.NamespacedName]int{}
	}
	s.at[key] = len(s.keys)
	s.keys = append(s.keys, key)
}

// remove puts the last one into the gap.
func (s *podSet) remove(key types.NamespacedName) {
	at, found := s.at[key]
	if !found {
		return
	}
	last := len(s.keys) - 1
	s.keys[at] = s.keys[last]
	s.at[s.keys[at]] = at
	s.keys = s.keys[:last]
	delete(s.at, key)
}
