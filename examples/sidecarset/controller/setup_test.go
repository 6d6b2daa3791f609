package controller

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/example/nginx-operator/examples/sidecarset/sidecar"
)

// asked is a queue that only remembers what it was asked for.
type asked struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]
	names []string
}

func (a *asked) AddAfter(request reconcile.Request, after time.Duration) {
	a.names = append(a.names, request.Name+" after "+after.String())
}

// Each event of a Pod that counts asks for a pass over its SidecarSets, and no other event asks for anything.
func TestCountPods(t *testing.T) {
	tally, queue := NewTally(), &asked{}
	events := countPods(tally)
	create := func(pod *corev1.Pod) {
		events.Create(t.Context(), event.TypedCreateEvent[*corev1.Pod]{Object: pod}, queue)
	}
	update := func(pod *corev1.Pod) {
		events.Update(t.Context(), event.TypedUpdateEvent[*corev1.Pod]{ObjectNew: pod}, queue)
	}
	remove := func(pod *corev1.Pod) {
		events.Delete(t.Context(), event.TypedDeleteEvent[*corev1.Pod]{Object: pod}, queue)
	}
	for _, step := range []struct {
		name string
		do   func()
		want []string
	}{
		{"a Pod with sidecars", func() { create(carrier("a", 1, image1)) }, []string{"logs after 100ms"}},
		{"the same again, as after a lost watch", func() { create(carrier("a", 1, image1)) }, nil},
		{"noise", func() { update(carrier("a", 2, image1, func(p *corev1.Pod) { p.Status.Message = "noise" })) }, nil},
		{"not ready", func() { update(carrier("a", 3, image1, unready)) }, []string{"logs after 100ms"}},
		{"a Pod without", func() { create(carrier("b", 4, image1, func(p *corev1.Pod) { p.Annotations = nil })) }, nil},
		{"another SidecarSet", func() {
			update(carrier("a", 5, image1, func(p *corev1.Pod) { p.Annotations[sidecar.AnnotationHash] = `{"mesh":"x"}` }))
		}, []string{"logs after 100ms", "mesh after 100ms"}},
		{"it ends", func() { remove(carrier("a", 6, image1)) }, []string{"mesh after 100ms"}},
		{"it ended", func() { remove(carrier("a", 6, image1)) }, nil},
	} {
		queue.names = nil
		if step.do(); !slices.Equal(queue.names, step.want) {
			t.Errorf("%s: asked for %q, want %q", step.name, queue.names, step.want)
		}
	}
	if len(tally.pods)+len(tally.sets) != 0 {
		t.Errorf("left %v and %v", tally.pods, tally.sets)
	}
}
