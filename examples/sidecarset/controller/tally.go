package controller

import (
	"maps"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/example/nginx-operator/examples/sidecarset/sidecar"
)

// Tally is the account of the Pods that carry sidecars, for each SidecarSet. An event of a Pod costs as much as the Pod
// carries sidecars of different SidecarSets, a question as much as there are different declarations of the SidecarSet still
// running, and neither more with more Pods. Only another selector looks at all Pods of its SidecarSet again.
//
// It is made by NewTally and safe for concurrent use.
type Tally struct {
	mu   sync.Mutex
	pods map[types.NamespacedName]*podEntry
	sets map[string]*setEntry
}

// podEntry is what counts of a Pod.
type podEntry struct {
	uid     types.UID
	version string
	labels  map[string]string
	carries map[string]sidecar.Hashes
	// ready as kubectl shows it; available also runs the images that it declares.
	ready, available bool
}

// setEntry is the account of one SidecarSet.
type setEntry struct {
	// selector is nil until the first pass over the SidecarSet; it counts nothing then.
	selector labels.Selector
	// carriers are all Pods with its sidecars, selected or not.
	carriers podSet
	// groups are the selected ones, by what they carry.
	groups map[sidecar.Hashes]*group
	ready  int
}

// group is the Pods that carry the same.
type group struct{ available, unavailable podSet }

// Counts is what the account says of a SidecarSet. All numbers are of Pods that its selector selects.
type Counts struct {
	// Matched carry its sidecars; Updated carry them as they are declared now; Ready are ready.
	Matched, Updated, Ready int
	// NotUpdatable differ in more than the image; Outdated differ in the image only.
	NotUpdatable, Outdated int
	// Next is the Pod to be updated now, nil where there is none or where another one has to become ready first.
	Next *types.NamespacedName
	// Waiting is a Pod that is not ready and that Next has to wait for, nil where there is none.
	Waiting *types.NamespacedName
}

// NewTally returns an account without Pods.
func NewTally() *Tally {
	return &Tally{pods: map[types.NamespacedName]*podEntry{}, sets: map[string]*setEntry{}}
}

// Observe takes what the watch says of a Pod, and returns the SidecarSets for which something changed.
func (t *Tally) Observe(pod *corev1.Pod) []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.observe(pod)
}

// Wrote takes the answer to a write of a Pod, so that the next pass does not take the Pod for one that was not written
// yet. One that is gone meanwhile stays so.
func (t *Tally) Wrote(pod *corev1.Pod) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if known := t.pods[keyOf(pod)]; known != nil && known.uid == pod.UID {
		t.observe(pod)
	}
}

// Remove takes a Pod out of the account, and returns the SidecarSets for which something changed.
func (t *Tally) Remove(pod *corev1.Pod) []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	key := keyOf(pod)
	if known := t.pods[key]; known == nil || known.uid != pod.UID {
		return nil
	}
	return t.replace(key, nil)
}

func (t *Tally) observe(pod *corev1.Pod) []string {
	key := keyOf(pod)
	known := t.pods[key]
	if known != nil && known.uid == pod.UID && older(pod.ResourceVersion, known.version) {
		return nil // what is known came with the answer to a write
	}
	entry := newPodEntry(pod)
	if known != nil && entry != nil && known.same(entry) {
		known.version = entry.version
		return nil
	}
	return t.replace(key, entry)
}

// replace puts a Pod in the place of what is known of its name; nil takes that away.
func (t *Tally) replace(key types.NamespacedName, entry *podEntry) []string {
	var touched []string
	known := t.pods[key]
	if known != nil {
		for name := range known.carries {
			t.uncount(key, name, known)
			touched = append(touched, name)
		}
	}
	delete(t.pods, key)
	if entry == nil {
		t.forgetEmpty(touched)
		return touched
	}
	t.pods[key] = entry
	for name := range entry.carries {
		t.count(key, name, entry)
		if known == nil || known.carries[name] == (sidecar.Hashes{}) {
			touched = append(touched, name)
		}
	}
	t.forgetEmpty(touched)
	return touched
}

func (t *Tally) count(key types.NamespacedName, name string, pod *podEntry) {
	set := t.sets[name]
	if set == nil {
		set = &setEntry{groups: map[sidecar.Hashes]*group{}}
		t.sets[name] = set
	}
	set.carriers.add(key)
	set.count(key, pod, pod.carries[name])
}

func (t *Tally) uncount(key types.NamespacedName, name string, pod *podEntry) {
	set := t.sets[name]
	set.carriers.remove(key)
	set.uncount(key, pod, pod.carries[name])
}

// forgetEmpty drops the accounts that are of no use any more: without Pods, and of no SidecarSet that is known.
func (t *Tally) forgetEmpty(names []string) {
	for _, name := range names {
		if set := t.sets[name]; set != nil && set.selector == nil && set.carriers.len() == 0 {
			delete(t.sets, name)
		}
	}
}

func newPodEntry(pod *corev1.Pod) *podEntry {
	carries := sidecar.Recorded(pod.Annotations)
	if len(carries) == 0 || !sidecar.Active(pod) || sidecar.ExcludedNamespace(pod.Namespace, "") {
		return nil
	}
	ready := sidecar.Ready(pod)
	return &podEntry{
		uid: pod.UID, version: pod.ResourceVersion, labels: pod.Labels, carries: carries,
		ready: ready, available: ready && sidecar.Settled(pod),
	}
}

// same tells whether another state of a Pod counts as this one does.
func (p *podEntry) same(other *podEntry) bool {
	return p.uid == other.uid && p.ready == other.ready && p.available == other.available &&
		maps.Equal(p.carries, other.carries) && maps.Equal(p.labels, other.labels)
}

// older tells whether one resourceVersion came before another. Where they cannot be compared, the watch is believed.
func older(version, known string) bool {
	order, err := resourceversion.CompareResourceVersion(version, known)
	return err == nil && order < 0
}

func keyOf(pod *corev1.Pod) types.NamespacedName {
	return types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
}
