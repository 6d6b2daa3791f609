package controller

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/examples/sidecarset/sidecar"
)

var (
	nginx  = labels.SelectorFromSet(labels.Set{"app": "nginx"})
	image1 = sidecar.Hashes{All: "image-1", WithoutImage: "rest-1"}
	image2 = sidecar.Hashes{All: "image-2", WithoutImage: "rest-1"}
	other2 = sidecar.Hashes{All: "other-2", WithoutImage: "rest-2"}
)

// carrier returns a ready Pod that carries sidecars of the SidecarSet "logs".
func carrier(name string, version int, hashes sidecar.Hashes, change ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: name, UID: types.UID(name + "-uid"), ResourceVersion: strconv.Itoa(version),
			Labels: map[string]string{"app": "nginx", sidecar.LabelInjected: "true"},
			Annotations: map[string]string{
				sidecar.AnnotationHash:             `{"logs":"` + hashes.All + `"}`,
				sidecar.AnnotationHashWithoutImage: `{"logs":"` + hashes.WithoutImage + `"}`,
			},
		},
		Status: corev1.PodStatus{
			Phase:      corev1.PodRunning,
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
		},
	}
	for _, f := range change {
		f(pod)
	}
	return pod
}

func unready(pod *corev1.Pod)  { pod.Status.Conditions[0].Status = corev1.ConditionFalse }
func finished(pod *corev1.Pod) { pod.Status.Phase = corev1.PodSucceeded }
func leaving(pod *corev1.Pod)  { pod.DeletionTimestamp = ptr.To(metav1.Now()) }
func foreign(pod *corev1.Pod)  { pod.Labels["app"] = "other" }
func waiting(pod *corev1.Pod) {
	pod.Annotations[sidecar.AnnotationInPlaceUpdate] = `{"logs":{"sidecar1":"id-1"}}`
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "sidecar1", ContainerID: "id-1"}}
}

func key(name string) *types.NamespacedName {
	return &types.NamespacedName{Namespace: "default", Name: name}
}

func TestCounts(t *testing.T) {
	for name, test := range map[string]struct {
		pods []*corev1.Pod
		now  sidecar.Hashes
		want Counts
	}{
		"none":               {nil, image1, Counts{}},
		"all as declared":    {[]*corev1.Pod{carrier("a", 1, image1), carrier("b", 1, image1)}, image1, Counts{Matched: 2, Updated: 2, Ready: 2}},
		"one is not ready":   {[]*corev1.Pod{carrier("a", 1, image1), carrier("b", 1, image1, unready)}, image1, Counts{Matched: 2, Updated: 2, Ready: 1}},
		"not of ours":        {[]*corev1.Pod{carrier("a", 1, image1, foreign), carrier("b", 1, image1, finished), carrier("c", 1, image1, leaving)}, image1, Counts{}},
		"of Kubernetes":      {[]*corev1.Pod{carrier("a", 1, image1, func(p *corev1.Pod) { p.Namespace = "kube-system" })}, image1, Counts{}},
		"created before":     {[]*corev1.Pod{carrier("a", 1, image1, func(p *corev1.Pod) { p.Annotations = nil })}, image1, Counts{}},
		"another image":      {[]*corev1.Pod{carrier("a", 1, image1), carrier("b", 1, image2)}, image2, Counts{Matched: 2, Updated: 1, Ready: 2, Outdated: 1, Next: key("a")}},
		"more than that":     {[]*corev1.Pod{carrier("a", 1, image1)}, other2, Counts{Matched: 1, Ready: 1, NotUpdatable: 1}},
		"the broken first":   {[]*corev1.Pod{carrier("a", 1, image1), carrier("b", 1, image1, unready)}, image2, Counts{Matched: 2, Ready: 1, Outdated: 2, Next: key("b")}},
		"an updated one":     {[]*corev1.Pod{carrier("a", 1, image1), carrier("b", 1, image2, unready)}, image2, Counts{Matched: 2, Updated: 1, Ready: 1, Outdated: 1, Waiting: key("b")}},
		"a broken one waits": {[]*corev1.Pod{carrier("a", 1, image1, unready), carrier("b", 1, image2, unready)}, image2, Counts{Matched: 2, Updated: 1, Outdated: 1, Waiting: key("b")}},
		"not restarted yet":  {[]*corev1.Pod{carrier("a", 1, image1), carrier("b", 1, image2, waiting)}, image2, Counts{Matched: 2, Updated: 1, Ready: 2, Outdated: 1, Waiting: key("b")}},
		"one of older fails": {[]*corev1.Pod{carrier("a", 1, image1), carrier("b", 1, other2, unready)}, image2, Counts{Matched: 2, Ready: 1, Outdated: 1, NotUpdatable: 1, Waiting: key("b")}},
	} {
		t.Run(name, func(t *testing.T) {
			tally := NewTally()
			for _, pod := range test.pods {
				tally.Observe(pod)
			}
			if diff := cmp.Diff(test.want, tally.Ask("logs", nginx, test.now)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// What happens to a Pod and does not count asks for no pass.
func TestNoiseTouchesNothing(t *testing.T) {
	tally := NewTally()
	if touched := tally.Observe(carrier("a", 1, image1)); !slices.Equal(touched, []string{"logs"}) {
		t.Errorf("a new Pod touched %v", touched)
	}
	noisy := carrier("a", 2, image1, func(p *corev1.Pod) { p.Status.Message = "noise"; p.Annotations["note"] = "x" })
	if touched := tally.Observe(noisy); touched != nil {
		t.Errorf("noise touched %v", touched)
	}
	if touched := tally.Observe(carrier("a", 3, image1, unready)); !slices.Equal(touched, []string{"logs"}) {
		t.Errorf("a Pod that is no longer ready touched %v", touched)
	}
	if touched := tally.Remove(carrier("a", 4, image1)); !slices.Equal(touched, []string{"logs"}) || len(tally.sets) != 0 {
		t.Errorf("the end of a Pod touched %v and left %v", touched, tally.sets)
	}
}

// The watch may be behind a write; what it says of the time before does not count any more.
func TestWatchBehindAWrite(t *testing.T) {
	tally := NewTally()
	tally.Observe(carrier("a", 1, image1))
	tally.Wrote(carrier("a", 5, image2, waiting))
	tally.Observe(carrier("a", 4, image1))
	if got := tally.Ask("logs", nginx, image2); got.Updated != 1 || got.Next != nil {
		t.Errorf("an old event undid a write: %+v", got)
	}
	tally.Observe(carrier("a", 6, image2))
	if got := tally.Ask("logs", nginx, image2); got.Updated != 1 || got.Waiting != nil {
		t.Errorf("a new event is not seen: %+v", got)
	}
}

// The answer to a write of a Pod that is gone, or was replaced by another of its name, does not bring it back.
func TestAnswerAfterTheEnd(t *testing.T) {
	tally := NewTally()
	tally.Observe(carrier("a", 1, image1))
	tally.Remove(carrier("a", 3, image1))
	tally.Wrote(carrier("a", 2, image2))
	if got := tally.Ask("logs", nginx, image2); got.Matched != 0 {
		t.Errorf("a Pod came back: %+v", got)
	}
	successor := carrier("a", 4, image1, func(p *corev1.Pod) { p.UID = "another" })
	tally.Observe(successor)
	tally.Wrote(carrier("a", 9, image2))
	if touched := tally.Remove(carrier("a", 9, image2)); touched != nil {
		t.Errorf("the end of the predecessor touched %v", touched)
	}
	if got := tally.Ask("logs", nginx, image1); got.Updated != 1 {
		t.Errorf("the successor is lost: %+v", got)
	}
}

// A selector that changes, or goes and comes back, counts the Pods that it selects.
func TestSelectorChanges(t *testing.T) {
	tally := NewTally()
	tally.Observe(carrier("a", 1, image1))
	tally.Observe(carrier("b", 1, image1, foreign))
	others := labels.SelectorFromSet(labels.Set{"app": "other"})
	for _, step := range []struct {
		selector labels.Selector
		want     int
	}{{nginx, 1}, {others, 1}, {labels.Nothing(), 0}, {labels.Everything(), 2}, {nginx, 1}} {
		if got := tally.Ask("logs", step.selector, image1); got.Matched != step.want || got.Ready != step.want {
			t.Errorf("%s: got %+v, want %d", step.selector, got, step.want)
		}
	}
	tally.Forget("logs")
	tally.Observe(carrier("c", 1, image1))
	if got := tally.Ask("logs", nginx, image1); got.Matched != 2 {
		t.Errorf("after it came back: %+v", got)
	}
}

// Whatever happens in whatever order, the account says what a count of all Pods says.
func TestTallyAgreesWithACount(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2)) // #nosec G404 -- the same each time
	tally, cluster := NewTally(), map[string]*corev1.Pod{}
	declarations := []sidecar.Hashes{image1, image2, other2}
	changes := []func(*corev1.Pod){unready, finished, leaving, foreign, waiting, func(*corev1.Pod) {}}
	selectors := []labels.Selector{nginx, labels.Everything(), labels.SelectorFromSet(labels.Set{"app": "other"})}
	selector, now := nginx, image1
	for step := range 20_000 {
		name := fmt.Sprint("pod-", random.IntN(30))
		switch random.IntN(10) {
		case 0:
			if pod := cluster[name]; pod != nil {
				tally.Remove(pod)
				delete(cluster, name)
			}
		case 1:
			selector = selectors[random.IntN(len(selectors))]
		case 2:
			now = declarations[random.IntN(len(declarations))]
		case 3:
			tally.Forget("logs")
		default:
			pod := carrier(name, step+1, declarations[random.IntN(len(declarations))], changes[random.IntN(len(changes))])
			cluster[name] = pod
			tally.Observe(pod)
		}
		got := tally.Ask("logs", selector, now)
		if next := got.Next; next != nil && (got.Waiting != nil || sidecar.Recorded(cluster[next.Name].Annotations)["logs"].WithoutImage != now.WithoutImage) {
			t.Fatalf("step %d: would update %s: %+v", step, next, got)
		}
		got.Next, got.Waiting = nil, nil
		if want := recount(cluster, selector, now); got != want {
			t.Fatalf("step %d: the account says %+v, a count %+v", step, got, want)
		}
	}
}

func recount(cluster map[string]*corev1.Pod, selector labels.Selector, now sidecar.Hashes) Counts {
	out := Counts{}
	for _, pod := range cluster {
		if !sidecar.Active(pod) || !selector.Matches(labels.Set(pod.Labels)) {
			continue
		}
		out.Matched++
		if sidecar.Ready(pod) {
			out.Ready++
		}
		switch carried := sidecar.Recorded(pod.Annotations)["logs"]; {
		case carried == now:
			out.Updated++
		case carried.WithoutImage != now.WithoutImage:
			out.NotUpdatable++
		default:
			out.Outdated++
		}
	}
	return out
}

// crowd returns an account of so many Pods, the first half of which is updated.
func crowd(pods int) *Tally {
	tally := NewTally()
	for i := range pods {
		hashes := image1
		if i < pods/2 {
			hashes = image2
		}
		tally.Observe(carrier(fmt.Sprint("pod-", i), 1, hashes))
	}
	tally.Ask("logs", nginx, image2)
	return tally
}

// failAndRecover lets a Pod fail and recover, and asks after each.
func failAndRecover(tally *Tally, broken, healthy *corev1.Pod) Counts {
	tally.Observe(broken)
	tally.Ask("logs", nginx, image2)
	tally.Observe(healthy)
	return tally.Ask("logs", nginx, image2)
}

// With a thousand times as many Pods an event and a pass cost the same. A count of all Pods would cost a thousand times as
// much, so the bar has room for a busy machine.
func TestWorkDoesNotGrowWithPods(t *testing.T) {
	broken, healthy := carrier("pod-0", 1, image2, unready), carrier("pod-0", 1, image2)
	// The fastest of several rounds is the one that nothing else interrupted.
	cost := func(tally *Tally) time.Duration {
		best := time.Hour
		for range 20 {
			began := time.Now()
			for range 100 {
				failAndRecover(tally, broken, healthy)
			}
			best = min(best, time.Since(began))
		}
		return best
	}
	few, many := crowd(50), crowd(50_000)
	if got := failAndRecover(many, broken, healthy); got.Matched != 50_000 || got.Updated != 25_000 || got.Ready != 50_000 || got.Next == nil {
		t.Fatalf("got %+v", got)
	}
	ofFew, ofMany := cost(few), cost(many)
	t.Logf("100 events: %s with 50 Pods, %s with 50,000", ofFew, ofMany)
	if ofMany > 20*ofFew {
		t.Errorf("100 events take %s with 50 Pods and %s with 50,000", ofFew, ofMany)
	}
	allocations := func(tally *Tally) float64 {
		return testing.AllocsPerRun(100, func() { failAndRecover(tally, broken, healthy) })
	}
	if ofFew, ofMany := allocations(few), allocations(many); ofMany > ofFew+1 {
		t.Errorf("an event allocates %.0f times with 50 Pods and %.0f times with 50,000", ofFew, ofMany)
	}
}

func BenchmarkEvent(b *testing.B) {
	broken, healthy := carrier("pod-0", 1, image2, unready), carrier("pod-0", 1, image2)
	for _, pods := range []int{10, 1_000, 100_000} {
		b.Run(fmt.Sprint(pods, " Pods"), func(b *testing.B) {
			tally := crowd(pods)
			b.ReportAllocs()
			for b.Loop() {
				failAndRecover(tally, broken, healthy)
			}
		})
	}
}
