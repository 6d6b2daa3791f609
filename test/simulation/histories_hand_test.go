package simulation

import (
	"cmp"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/example/nginx-operator/test/simulation/storage"
	"github.com/example/nginx-operator/test/simulation/world"
)

const (
	revisionAnnotation = "deployment.kubernetes.io/revision"
	restartAnnotation  = "kubectl.kubernetes.io/restartedAt"
)

// undo is kubectl rollout undo: the Deployment gets the template and the annotations of the
// ReplicaSet before the newest.
func (h *history) undo() {
	var sets []*appsv1.ReplicaSet
	for _, found := range h.Store.List(storage.ReplicaSets, world.Namespace) {
		if set := storage.As[appsv1.ReplicaSet](found); set.Labels["app.kubernetes.io/instance"] == "web" {
			sets = append(sets, set)
		}
	}
	h.need(len(sets) > 1, "there is no earlier ReplicaSet")
	slices.SortFunc(sets, func(a, b *appsv1.ReplicaSet) int { return cmp.Compare(revisionOf(b), revisionOf(a)) })
	d, earlier := h.Deployment("web"), sets[1]
	d.Spec.Template = *earlier.Spec.Template.DeepCopy()
	delete(d.Spec.Template.Labels, appsv1.DefaultDeploymentUniqueLabelKey)
	for key, value := range earlier.Annotations {
		if !strings.HasPrefix(key, "deployment.kubernetes.io/") {
			metav1.SetMetaDataAnnotation(&d.ObjectMeta, key, value)
		}
	}
	h.Must(h.Write(d))
}

func revisionOf(set *appsv1.ReplicaSet) int {
	number, _ := strconv.Atoi(set.Annotations[revisionAnnotation])
	return number
}

// pauseByHand is kubectl rollout pause, or kubectl rollout resume.
func (h *history) pauseByHand(paused bool) {
	d := h.Deployment("web")
	d.Spec.Paused = paused
	h.Must(h.Write(d))
}

// restartByHand is kubectl rollout restart.
func (h *history) restartByHand() {
	d := h.Deployment("web")
	metav1.SetMetaDataAnnotation(&d.Spec.Template.ObjectMeta, restartAnnotation, "now")
	h.Must(h.Write(d))
}

// hasTemplate reports whether the Deployment has a template.
func (h *history) hasTemplate(want *corev1.PodTemplateSpec) bool {
	return reflect.DeepEqual(h.Deployment("web").Spec.Template, *want)
}

// undone requires that an undo by hand is corrected, except while the instance is paused.
func undone(h *history, in state) {
	before, edition := h.Deployment("web").Spec.Template, h.now().edition()
	h.undo()
	if in.name == "paused" {
		h.during(10*time.Minute, "the earlier template while paused", func() bool { return !h.hasTemplate(&before) })
		return
	}
	h.within(time.Minute, "the template before the undo", func() bool { return h.hasTemplate(&before) })
	h.keeps(edition, time.Minute)
}

// heldByHand requires that nothing rolls and no deadline runs while the Deployment is paused by
// hand.
func heldByHand(h *history, in state) {
	served, failed := h.readyNames(), h.degraded()
	h.pauseByHand(true)
	h.during(30*time.Minute, "the same Pods", func() bool { return slices.Equal(h.readyNames(), served) })
	if in.name != "rolled back" {
		h.during(time.Minute, "the same template", func() bool { return h.runs(in.image) })
	}
	if in.name == "rolling" {
		h.explains("pause")
	} else if h.degraded() && !failed {
		h.errorf("a failure is reported: %s", h.seen())
	}
	h.Heal()
	h.pauseByHand(false)
	if in.name == "rolling" {
		h.within(5*time.Minute, "S2", func() bool { return h.current() && h.serves(badImage) && h.now().edition() == "2" })
	}
}

// restarted requires that a restart by hand stays, and reaches all Pods that can start.
func restarted(h *history, in state) {
	edition := h.now().edition()
	h.restartByHand()
	isRestarted := func(of map[string]string) bool { return of[restartAnnotation] == "now" }
	if in.name != "rolling" {
		h.within(5*time.Minute, "restarted Pods", func() bool {
			ready := h.now().ready()
			return len(ready) > 0 && !slices.ContainsFunc(ready, func(pod *corev1.Pod) bool { return !isRestarted(pod.Annotations) })
		})
	}
	h.during(5*time.Minute, "the annotation of the restart", func() bool { return isRestarted(h.Deployment("web").Spec.Template.Annotations) })
	h.keeps(edition, time.Minute)
}

// restored returns a check that a child that is deleted by hand comes back as it was in effect.
func restored(of *storage.Resource) func(*history, state) {
	return func(h *history, in state) {
		exists := func() bool {
			return h.Store.Get(storage.Key{Resource: of, Namespace: world.Namespace, Name: "web"}) != nil
		}
		h.Remove(of, "web")
		image := in.image
		switch {
		case in.name == "paused":
			h.during(5*time.Minute, "no "+of.Kind+" while paused", func() bool { return !exists() })
			h.change(pause(false))
			h.within(5*time.Minute, "S2", func() bool { return h.current() && h.serves(ownImage) && h.now().edition() == "2" })
			return
		case in.name == "waiting for a slot" && of == storage.Deployments:
			image = newDefault
		}
		h.within(time.Minute, "the "+of.Kind+" again", func() bool { return exists() && h.runs(image) && h.now().edition() == in.edition })
		h.keeps(in.edition, time.Minute)
	}
}

// byHand has the histories in which a user or another client changes children.
var byHand = slices.Concat(
	inEachState("history-10 kubectl rollout undo", undone),
	inEachState("history-10 kubectl rollout pause", heldByHand),
	inEachState("history-10 kubectl rollout restart", restarted),
	inEachState("history-16 the Service is deleted", restored(storage.Services)),
	inEachState("history-16 the NetworkPolicy is deleted", restored(storage.NetworkPolicies)),
	inEachState("history-16 the Deployment is deleted", restored(storage.Deployments)),
	[]tale{
		{"history-10 a change is applied when the Deployment is resumed", past(func(h *history) {
			h.begin()
			h.pauseByHand(true)
			h.change(second)
			h.during(30*time.Minute, "S1's Pods and entrance", func() bool { return h.now().servesEdition("1") && h.now().edition() == "1" })
			h.pauseByHand(false)
			h.within(5*time.Minute, "S2", func() bool { return h.current() && h.now().servesEdition("2") && h.now().edition() == "2" })
		})},

		{"history-16 the Service is deleted while paused, and the change that was declared meanwhile fails", past(func(h *history) {
			h.begin()
			h.change(pause(true))
			h.Run(time.Minute)
			h.Remove(storage.Services, "web")
			h.unpullable(ownImage, "not found")
			h.change(useImage(ownImage), narrowTo("2"))
			h.Run(time.Minute)
			h.change(pause(false))
			h.within(time.Minute, "the Service", func() bool { return len(h.now().numbers()) > 0 })
			h.during(30*time.Minute, "S1's Pods and NetworkPolicy behind a Service", func() bool {
				return h.serves(oldDefault) && h.now().peers()[8080] == "1" && len(h.now().numbers()) > 0
			})
		})},

		{"history-16 the first Pods become ready while paused, and the change that was declared meanwhile fails", past(func(h *history) {
			h.writeConfiguration(goodConfiguration)
			h.unpullable(oldDefault, "not found")
			h.Edit("web", func(of *spec) { configure(of); entrance("1")(of); variable("1")(of) })
			h.Run(time.Minute)
			h.change(pause(true))
			h.Run(time.Minute)
			h.unpullable(ownImage, "not found")
			h.need(h.Until(10*time.Minute, func() bool { return len(h.now().ready()) > 0 }), "no Pod is ready: %s", h.seen())
			h.Run(time.Minute)
			h.change(useImage(ownImage), entrance("2"))
			h.Run(time.Minute)
			h.change(pause(false))
			h.keeps("1", 30*time.Minute)
		})},

		{"history-6 the Deployment is edited by hand while blocked and no operator runs", past(func(h *history) {
			h.blockedWithoutOperator(func() {
				d := h.Deployment("web")
				d.Spec.Template.Spec.Containers[0].Image = "registry.example/hand:1"
				h.Must(h.Write(d))
			})
		})},

		{"history-6 kubectl rollout undo while blocked and no operator runs", past(func(h *history) {
			h.blockedWithoutOperator(h.undo)
		})},
	},
)

// blockedWithoutOperator requires that a change of the Deployment by hand is corrected.
func (h *history) blockedWithoutOperator(changeByHand func()) {
	h.begin()
	h.Remove(storage.ConfigMaps, "conf")
	h.need(h.Until(time.Minute, h.degraded), "not blocked: %s", h.seen())
	before := h.Deployment("web").Spec.Template
	h.Stop()
	changeByHand()
	h.Run(time.Minute)
	h.Start(0)
	h.within(time.Minute, "the template before the change", func() bool { return h.hasTemplate(&before) })
	h.within(2*time.Minute, "S1's Pods", func() bool { return h.now().servesEdition("1") && h.serves(oldDefault) })
	h.keeps("1", time.Minute)
}
