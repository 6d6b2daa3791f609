package simulation

import (
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/test/simulation/storage"
	"github.com/example/nginx-operator/test/simulation/world"
)

// history is a story about the successive specs of an instance: S1 is good, and S2 and S3 are later
// specs. Histories observe only what a user sees: children, Pods, conditions, and messages.
type history struct{ *story }

func past(tell func(*history)) func(*story) { return func(s *story) { tell(&history{s}) } }

const (
	oldDefault = "registry.example/nginx:1"
	newDefault = "registry.example/nginx:2"
	ownImage   = "registry.example/own:1"
)

func useImage(image string) func(*spec) { return func(of *spec) { of.Image = image } }

func replicas(number int32) func(*spec) { return func(of *spec) { of.Replicas = &number } }

func pause(paused bool) func(*spec) { return func(of *spec) { of.Paused = paused } }

// variable sets an environment variable, which changes the Pod template.
func variable(value string) func(*spec) {
	return func(of *spec) { of.Env = []v1alpha2.EnvVar{{Name: "EDITION", Value: value}} }
}

// entrance sets the Service, the NetworkPolicy, and the Ingress to an edition.
func entrance(edition string) func(*spec) {
	return func(of *spec) {
		annotate(edition)(of)
		narrowTo(edition)(of)
		of.Expose = &v1alpha2.Expose{Ingress: &v1alpha2.Ingress{Hosts: []v1alpha2.IngressHost{{Host: edition + ".example.com"}}}}
	}
}

func annotate(edition string) func(*spec) {
	return func(of *spec) {
		of.Service = &v1alpha2.Service{Annotations: map[string]string{"example.com/edition": edition}}
	}
}

func narrowTo(edition string) func(*spec) {
	peer := networkingv1.NetworkPolicyPeer{PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"edition": edition}}}
	return func(of *spec) {
		of.NetworkPolicy = &v1alpha2.NetworkPolicy{From: []networkingv1.NetworkPolicyPeer{peer}}
	}
}

// configure references the ConfigMap that writeConfiguration writes.
func configure(of *spec) {
	of.Config = &v1alpha2.Config{ConfigMapRef: &v1alpha2.ConfigMapKeyReference{Name: "conf", Key: "nginx.conf"}}
}

func (h *history) writeConfiguration(text string) {
	h.Must(h.Write(world.ConfigMap("conf", "nginx.conf", text)))
}

// goodConfiguration is accepted by the operator and by nginx.
const goodConfiguration = "server { listen 8080; return 204; }"

// change edits the spec in one write.
func (h *history) change(changes ...func(*spec)) {
	h.edit(func(of *spec) {
		for _, change := range changes {
			change(of)
		}
	})
}

// unpullable makes an image unavailable, for a reason of the registry.
func (h *history) unpullable(image, why string) {
	h.Kube.Faults.Unpullable = map[string]string{image: why}
	h.Kube.Changed()
}

// release starts a release with another default image.
func (h *history) release() {
	h.Release.Image = newDefault
	h.Released = append(h.Released, time.Now())
	h.Restart(0)
}

// imageOf returns the image of a Deployment, or "" if it does not exist.
func imageOf(d *appsv1.Deployment) string {
	if len(d.Spec.Template.Spec.Containers) == 0 {
		return ""
	}
	return d.Spec.Template.Spec.Containers[0].Image
}

// runs reports whether the Deployment has an image.
func (h *history) runs(image string) bool { return imageOf(h.Deployment("web")) == image }

// readyNames returns the sorted names of the ready Pods.
func (h *history) readyNames() (out []string) {
	for _, pod := range h.now().ready() {
		out = append(out, pod.Name)
	}
	slices.Sort(out)
	return out
}

// serves reports whether as many Pods are ready as the spec has replicas, all with an image.
func (h *history) serves(image string) bool {
	return h.now().serves(image) && len(h.now().ready()) >= int(ptr.Deref(h.Instance("web").Spec.Replicas, 1))
}

func (h *history) degraded() bool {
	return h.condition(v1alpha2.ConditionDegraded).Status == metav1.ConditionTrue
}

// current reports whether the instance is Ready at its newest generation.
func (h *history) current() bool {
	ready := h.condition(v1alpha2.ConditionReady)
	return ready.Status == metav1.ConditionTrue && ready.ObservedGeneration == h.Instance("web").Generation && !h.degraded()
}

// seen returns the observed state for messages.
func (h *history) seen() string {
	images := map[string]int{}
	for _, pod := range h.now().ready() {
		images[pod.Spec.Containers[0].Image]++
	}
	return fmt.Sprintf("Deployment %q, ready Pods %v, entrance %s, status %q",
		imageOf(h.Deployment("web")), images, h.now().edition(), h.explained())
}

// within requires that something holds before a limit.
func (h *history) within(limit time.Duration, want string, holds func() bool) {
	if !h.Until(limit, holds) {
		h.errorf("not within %s: %s; %s", limit, want, h.seen())
	}
}

// during requires that something holds the whole time.
func (h *history) during(while time.Duration, want string, holds func() bool) {
	began := time.Now()
	if h.Until(while, func() bool { return !holds() }) {
		h.errorf("after %s no longer: %s; %s", time.Since(began), want, h.seen())
	}
}

// gets requires an entrance before a limit.
func (h *history) gets(edition string, limit time.Duration) {
	h.within(limit, "entrance "+edition, func() bool { return h.now().edition() == edition })
}

// kept requires an entrance at each write since a resource version.
func (h *history) kept(edition string, since int64) {
	h.replay(since, func(now view) string {
		if now.edition() != edition {
			return fmt.Sprintf("entrance %s, and not %s", now.edition(), edition)
		}
		return ""
	})
}

// keeps requires an entrance at each write of a period.
func (h *history) keeps(edition string, while time.Duration) {
	before := h.Store.Revision()
	h.Run(while)
	h.kept(edition, before)
}

// promotes requires the entrance of S1 at each write since a resource version until only S2 serves,
// and then the entrance of S2.
func (h *history) promotes(since int64, first, second string, serves func(view) bool) {
	h.within(90*time.Minute, "S2's Pods", func() bool { return serves(h.now()) })
	h.gets(second, 2*time.Minute)
	served := false
	h.replay(since, func(now view) string {
		served = served || serves(now)
		if !served && now.edition() != first {
			return fmt.Sprintf("before S2 serves, entrance %s, and not %s", now.edition(), first)
		}
		return ""
	})
}

// explains requires that the status names something.
func (h *history) explains(name string) {
	if text := h.explained(); !h.degraded() || !strings.Contains(text, name) {
		h.errorf("the status does not report %q: %s", name, text)
	}
}

// fail applies S2, whose image does not exist, and returns soon after the status has reported that.
func (h *history) fail(changes ...func(*spec)) {
	good := h.image()
	h.lose("not found")
	h.change(append(changes, useBadImage)...)
	failed := h.Until(5*time.Minute, func() bool { return h.degraded() && h.runs(good) && h.serves(good) })
	h.need(failed, "S2 does not fail: %s", h.seen())
	h.Run(10 * time.Second)
}

// tries returns how often the Deployment got badImage.
func (h *history) tries() (count int) {
	before := ""
	for _, version := range h.Store.Since(0) {
		if version.Resource != storage.Deployments || version.Name != "web" {
			continue
		}
		image := imageOf(storage.As[appsv1.Deployment](version))
		if image == badImage && before != badImage {
			count++
		}
		before = image
	}
	return count
}

// state is a state of an instance.
type state struct {
	name  string
	reach func(*history)
	// image is the image of the Deployment, and edition is the entrance that is in effect.
	image, edition string
}

// begin brings the instance to S1, with an older ReplicaSet.
func (h *history) begin() {
	h.writeConfiguration(goodConfiguration)
	h.serve(configure, entrance("0"), variable("0"))
	h.change(entrance("1"), variable("1"))
	h.need(h.Until(5*time.Minute, func() bool { return h.current() && h.now().edition() == "1" }), "S1 is not current: %s", h.seen())
	h.Run(time.Minute)
}

// wait starts a release while another instance takes the only slot of the rollout.
func (h *history) wait() {
	serve(h.t, h.World, "a", func(*spec) {})
	canary := h.Instance("a")
	canary.Labels = map[string]string{"operator.example.com/canary": "true"}
	h.Must(h.Write(canary))
	h.Run(time.Minute)
	h.unpullable(newDefault, "i/o timeout")
	h.release()
	h.Run(time.Minute)
	h.need(imageOf(h.Deployment("a")) == newDefault && h.runs(oldDefault), "web does not wait for a: %s", h.seen())
}

// second is S2, which differs from S1 in the Pod template and in the entrance.
func second(of *spec) {
	variable("2")(of)
	entrance("2")(of)
}

// states has the states of an instance. In each but current and waiting, the spec is S2.
var states = []state{
	{"current", func(*history) {}, oldDefault, "1"},
	{"rolling", func(h *history) {
		h.lose("i/o timeout")
		h.change(second, useBadImage)
		h.Run(30 * time.Second)
	}, badImage, "1"},
	{"waiting for a slot", (*history).wait, oldDefault, "1"},
	{"blocked", func(h *history) {
		h.Remove(storage.ConfigMaps, "conf")
		h.need(h.Until(time.Minute, h.degraded), "not blocked: %s", h.seen())
		h.change(second)
		h.Run(30 * time.Second)
	}, oldDefault, "1"},
	{"paused", func(h *history) {
		h.change(second, useImage(ownImage), pause(true))
		h.Run(30 * time.Second)
	}, oldDefault, "1"},
	{"rolled back", func(h *history) { h.fail(second) }, oldDefault, "1"},
}

// inEachState returns a story for each state.
func inEachState(name string, tell func(*history, state)) (out []tale) {
	for _, in := range states {
		out = append(out, tale{name + ", " + in.name, past(func(h *history) {
			h.begin()
			in.reach(h)
			tell(h, in)
		})})
	}
	return out
}
