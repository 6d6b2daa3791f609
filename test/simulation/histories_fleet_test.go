package simulation

import (
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/example/nginx-operator/test/simulation/storage"
	"github.com/example/nginx-operator/test/simulation/world"
)

// queue makes three instances wait behind a fourth, edits the Service of one of them if it has a
// name, and returns the order in which they roll.
func (h *history) queue(edited string) (order []string) {
	h.begin()
	for _, name := range []string{"m", "x"} {
		serve(h.t, h.World, name, func(*spec) {})
	}
	h.wait()
	if edited != "" {
		h.Edit(edited, annotate("2"))
		h.Run(time.Minute)
	}
	h.Heal()
	before := h.Store.Revision()
	h.Run(10 * time.Minute)
	for _, version := range h.Store.Since(before) {
		if version.Resource == storage.Deployments && version.Name != "a" && !slices.Contains(order, version.Name) &&
			imageOf(storage.As[appsv1.Deployment](version)) == newDefault {
			order = append(order, version.Name)
		}
	}
	h.need(len(order) == 3, "only %v roll", order)
	return order
}

// beforeSlot is the time before the change of the Deployment that belongs to its rollout.
const beforeSlot = 2 * time.Second

// writesBeforeSlot returns the writes that a release caused since a resource version for an
// instance that had no slot. One write of the status may report that the instance waits.
func (h *history) writesBeforeSlot(name string, since int64) (out []string) {
	statuses, versions := 0, h.Store.Since(since)
	slot := slices.IndexFunc(versions, func(version *storage.Version) bool {
		return version.Resource == storage.Deployments && version.Name == name && imageOf(storage.As[appsv1.Deployment](version)) == newDefault
	})
	if slot < 0 {
		return []string{name + " does not roll"}
	}
	for _, version := range versions[:slot] {
		owner, _, _ := strings.Cut(version.Name, "-")
		if owner != name || version.At.After(versions[slot].At.Add(-beforeSlot)) {
			continue
		}
		switch version.Resource {
		case storage.NginxOperators:
			statuses++
		case storage.Deployments, storage.Services, storage.NetworkPolicies, storage.Ingresses, storage.ConfigMaps,
			storage.ControllerRevisions, storage.PodDisruptionBudgets:
			out = append(out, version.String())
		}
	}
	if statuses > 1 {
		out = append(out, fmt.Sprintf("%d statuses", statuses))
	}
	return out
}

// crash makes nginx crash in the Pods of "web" with a property.
func (h *history) crash(has func(*corev1.PodSpec) bool) {
	h.Kube.Faults.Crashes = func(pod *corev1.Pod) bool { return pod.Labels["app.kubernetes.io/instance"] == "web" && has(&pod.Spec) }
	h.Kube.Changed()
}

// failsSecond brings the instance to S1, and lets S2 fail because nginx crashes in some of its
// Pods.
func (h *history) failsSecond(crashes func(image string) bool) {
	h.begin()
	for _, name := range []string{"a", "z"} {
		serve(h.t, h.World, name, func(*spec) {})
	}
	h.crash(func(pod *corev1.PodSpec) bool { return editionOf(pod) == "2" && crashes(pod.Containers[0].Image) })
	h.change(second)
	h.need(h.Until(5*time.Minute, func() bool { return h.degraded() && h.now().servesEdition("1") }), "S2 does not fail: %s", h.seen())
	h.Run(30 * time.Second)
}

// crashingConfiguration is accepted by the operator, and nginx crashes with it.
const crashingConfiguration = "server { listen 8080; return 503; }"

// mountsCrashing reports whether a Pod has crashingConfiguration.
func (h *history) mountsCrashing(pod *corev1.PodSpec) bool {
	return slices.ContainsFunc(pod.Volumes, func(volume corev1.Volume) bool {
		if volume.ConfigMap == nil {
			return false
		}
		mounted, _ := world.Get[corev1.ConfigMap](h.World, storage.ConfigMaps, volume.ConfigMap.Name)
		return strings.Contains(fmt.Sprint(mounted.Data), "return 503")
	})
}

// configurationFails makes the ConfigMap invalid for nginx, requires S1's Pods, and corrects it.
func (h *history) configurationFails() {
	h.crash(h.mountsCrashing)
	served := h.readyNames()
	h.writeConfiguration(crashingConfiguration)
	h.within(5*time.Minute, "Degraded, with the earlier Pods", func() bool { return h.degraded() && h.now().servesEdition("1") })
	h.during(time.Minute, "the earlier Pods", func() bool { return slices.Equal(h.readyNames(), served) })
	h.writeConfiguration(goodConfiguration)
	h.within(15*time.Minute, "current", h.current)
}

// fleets has the histories in which a release has another default image, or a ConfigMap changes.
var fleets = []tale{
	{"history-3a a release mends a change that failed", past(func(h *history) {
		h.failsSecond(func(image string) bool { return image == oldDefault })
		before := h.Store.Revision()
		h.release()
		h.promotes(before, "1", "2", func(now view) bool { return now.servesEdition("2") && now.serves(newDefault) })
	})},

	{"history-3a a change that failed fails again with a release", past(func(h *history) {
		h.failsSecond(func(string) bool { return true })
		before := h.Store.Revision()
		h.release()
		h.within(time.Hour, "the release on all other instances", func() bool {
			return imageOf(h.Deployment("a")) == newDefault && imageOf(h.Deployment("z")) == newDefault
		})
		h.Run(time.Hour)
		h.kept("1", before)
	})},

	{"history-3b the entrance is edited after the image of a release failed", past(func(h *history) {
		h.begin()
		h.unpullable(newDefault, "not found")
		h.release()
		failed := h.Until(5*time.Minute, func() bool { return h.degraded() && h.serves(oldDefault) })
		h.need(failed, "the release does not fail: %s", h.seen())
		h.change(entrance("2"))
		h.gets("2", time.Minute)
		h.keeps("2", 30*time.Minute)
	})},

	{"history-4 an edit of the Service while waiting applies at once", past(func(h *history) {
		h.begin()
		h.wait()
		h.change(annotate("2"))
		isAnnotated := func() bool { return h.now().annotation() == "2" }
		h.within(time.Minute, "the annotation of the Service", isAnnotated)
		h.during(5*time.Minute, "the Pods of the last release, and the annotation", func() bool { return h.runs(oldDefault) && isAnnotated() })
		h.change(variable("2"))
		h.within(time.Minute, "the variable and the release's image", func() bool {
			return h.runs(newDefault) && editionOf(&h.Deployment("web").Spec.Template.Spec) == "2"
		})
	})},

	{"history-4 an edit of the Service while waiting keeps the place in the queue", past(func(h *history) {
		h.Stop()
		control := &history{&story{World: world.New(release, 1), t: h.t}}
		control.Start(0)
		want := control.queue("")
		control.Stop()
		h.Start(0)
		if got := h.queue(want[0]); !slices.Equal(got, want) {
			h.errorf("the instances roll in the order %v, and without an edit of %s in the order %v", got, want[0], want)
		}
	})},

	{"history-4a a release writes nothing before the slot", past(func(h *history) {
		// 12 instances that share one slot represent 10,000 instances.
		var names []string
		for i := range 12 {
			names = append(names, fmt.Sprintf("i%02d", i))
			h.Edit(names[i], entrance("1"))
		}
		h.Run(5 * time.Minute)
		before := h.Store.Revision()
		h.release()
		h.Run(15 * time.Minute)
		for _, name := range names {
			if writes := h.writesBeforeSlot(name, before); len(writes) > 0 {
				h.errorf("%s was written before its slot: %s", name, strings.Join(writes, ", "))
			}
		}
	})},

	{"history-12 a ConfigMap becomes invalid for the operator, then good", past(func(h *history) {
		h.begin()
		served := h.readyNames()
		h.writeConfiguration("server {")
		h.within(time.Minute, "Degraded", h.degraded)
		h.during(30*time.Minute, "the same Pods", func() bool { return slices.Equal(h.readyNames(), served) })
		h.writeConfiguration(goodConfiguration)
		h.within(5*time.Minute, "current", h.current)
	})},

	{"history-12 a ConfigMap becomes invalid for nginx, then good", past(func(h *history) {
		h.begin()
		h.configurationFails()
	})},

	{"history-12 a ConfigMap becomes invalid for nginx after an upgrade, then good", past(func(h *history) {
		h.load("0.7.1", leftBehind[0])
		h.Start(0)
		h.Run(time.Minute)
		h.configurationFails()
	})},

	{"history-12 a ConfigMap changes while a release waits for a slot", past(func(h *history) {
		h.begin()
		h.wait()
		h.crash(h.mountsCrashing)
		h.writeConfiguration(crashingConfiguration)
		h.within(time.Minute, "a rollout without a slot", func() bool { return h.runs(newDefault) })
		h.Kube.Faults.Unpullable = nil
		h.Kube.Changed()
		h.within(5*time.Minute, "Degraded, with the earlier Pods", func() bool { return h.degraded() && h.serves(oldDefault) })
		h.writeConfiguration(goodConfiguration)
		h.within(15*time.Minute, "current", func() bool { return h.current() && h.serves(newDefault) })
	})},
}
