package simulation

import (
	"slices"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/test/simulation/storage"
	"github.com/example/nginx-operator/test/simulation/world"
)

// untilRetry is a time after a failure that is shorter than any back-off.
const untilRetry = time.Minute

// request returns resources with a request of one resource.
func request(name corev1.ResourceName, quantity string) *corev1.ResourceRequirements {
	return &corev1.ResourceRequirements{Requests: corev1.ResourceList{name: resource.MustParse(quantity)}}
}

func autoscale(least, most int32) func(*spec) {
	return func(of *spec) { of.Autoscaling = &v1alpha2.Autoscaling{MinReplicas: &least, MaxReplicas: most} }
}

// autoscaled reports whether the Deployment has an autoscaler.
func (h *history) autoscaled() bool {
	_, found := world.Get[autoscalingv2.HorizontalPodAutoscaler](h.World, storage.Autoscalers, "web")
	return found
}

// port sets the only port.
func port(name string, number, target int32) func(*spec) {
	return func(of *spec) { of.Ports = []v1alpha2.Port{{Name: name, Port: number, TargetPort: &target}} }
}

// listen is a configuration with which nginx listens on each number of the histories about ports.
func listen(of *spec) {
	of.Config = &v1alpha2.Config{Inline: "server { listen 8080; listen 8081; return 204; }"}
}

// renewsAfterFailure requires S1's Pods with the new certificate after S2 has failed.
func (h *history) renewsAfterFailure(changes ...func(*spec)) {
	h.RenewCertificate()
	h.serve(world.UseCertificate)
	h.fail(changes...)
	h.Run(time.Hour)
	old := h.readyNames()
	h.RenewCertificate()
	h.within(10*time.Minute, "S1's Pods with the new certificate", func() bool {
		return h.serves(oldDefault) && !slices.ContainsFunc(h.readyNames(), func(name string) bool { return slices.Contains(old, name) })
	})
}

// rollsOnce requires one new try after an edit, and then S1's Pods.
func (h *history) rollsOnce(edit func(*spec)) {
	before := h.tries()
	h.change(edit)
	h.within(30*time.Second, "a new try", func() bool { return h.tries() == before+1 })
	h.within(untilRetry, "S1's Pods, and the failure", func() bool { return h.degraded() && h.runs(oldDefault) && h.serves(oldDefault) })
	h.during(30*time.Second, "no further try", func() bool { return h.tries() <= before+1 })
}

// failures has the histories in which a change of the user fails.
var failures = []tale{
	{"history-2 edits after a failure", past(func(h *history) {
		h.begin()
		h.fail(variable("2"))
		h.change(narrowTo("2"))
		h.keeps("1", 10*time.Minute)
		h.explains(badImage)
		h.change(replicas(3))
		h.within(time.Minute, "3 replicas", func() bool { return h.serves(oldDefault) })
		before := h.Store.Revision()
		h.change(useImage(""))
		h.promotes(before, "1", "Service 1, NetworkPolicy 2, Ingress 1", func(now view) bool { return now.servesEdition("2") })
		h.within(time.Minute, "current", h.current)
	})},

	{"history-3 the certificate is renewed after a failure", past(func(h *history) { h.renewsAfterFailure() })},

	{"history-3 the certificate is renewed after a failure of a change without it", past(func(h *history) {
		h.renewsAfterFailure(func(of *spec) { of.TLS = nil })
	})},

	{"history-5 a referenced ConfigMap is deleted during a rollout that fails", past(func(h *history) {
		h.writeConfiguration(goodConfiguration)
		h.serve(entrance("1"))
		h.lose("i/o timeout")
		h.change(configure, useBadImage, entrance("2"))
		h.Run(30 * time.Second)
		h.Remove(storage.ConfigMaps, "conf")
		h.within(20*time.Minute, "S1 again", func() bool { return h.runs(oldDefault) && h.serves(oldDefault) && h.now().edition() == "1" })
		h.explains("conf")
	})},

	{"history-7 the first spec never becomes ready, and the entrance is edited", past(func(h *history) {
		h.lose("i/o timeout")
		h.Edit("web", func(of *spec) {
			useBadImage(of)
			entrance("1")(of)
		})
		h.Run(3 * time.Minute)
		h.change(entrance("2"))
		h.gets("2", time.Minute)
		h.keeps("2", 30*time.Minute)
	})},

	{"history-8 a change without replicas fails with replicas", past(func(h *history) {
		h.begin()
		h.change(replicas(0))
		h.Run(time.Minute)
		h.lose("not found")
		h.change(second, useBadImage)
		h.Run(time.Minute)
		h.change(replicas(3))
		h.Run(time.Minute)
		h.during(30*time.Minute, "S2's Pods and entrance", func() bool { return h.runs(badImage) && h.now().edition() == "2" })
		h.explains(badImage)
	})},

	{"history-8a replicas are removed and added after a failure", past(func(h *history) {
		h.serve(listen, port("http", 8080, 8080), entrance("1"))
		h.fail(port("http", 8081, 8081), entrance("2"))
		h.change(replicas(0))
		h.within(time.Minute, "no Pods", func() bool { return len(h.now().ready()) == 0 })
		h.Run(time.Minute)
		h.change(replicas(3))
		h.within(2*time.Minute, "S1's Pods", func() bool { return h.serves(oldDefault) })
		h.during(30*time.Minute, "S1's Pods and entrance, and the failure", func() bool {
			return h.serves(oldDefault) && h.degraded() && h.now().edition() == "1" && slices.Contains(h.now().numbers(), 8080)
		})
	})},

	{"history-9 autoscaling is removed while blocked", past(func(h *history) {
		h.writeConfiguration(goodConfiguration)
		h.serve(configure, autoscale(4, 5))
		h.Remove(storage.ConfigMaps, "conf")
		h.need(h.Until(time.Minute, h.degraded), "not blocked: %s", h.seen())
		h.change(replicas(2), func(of *spec) { of.Autoscaling = nil })
		h.within(time.Minute, "no autoscaler, and 2 replicas", func() bool { return !h.autoscaled() && *h.Deployment("web").Spec.Replicas == 2 })
		h.during(30*time.Minute, "2 replicas", func() bool { return *h.Deployment("web").Spec.Replicas == 2 })
	})},

	{"history-9a autoscaling is added with its resources in a change that fails", past(func(h *history) {
		h.serve(func(of *spec) { of.Resources = request(corev1.ResourceMemory, "64Mi") })
		h.fail(autoscale(4, 5), func(of *spec) { of.Resources = request(corev1.ResourceCPU, "100m") })
		h.within(time.Minute, "2 replicas", func() bool { return *h.Deployment("web").Spec.Replicas == 2 })
		h.during(30*time.Minute, "2 replicas", func() bool { return *h.Deployment("web").Spec.Replicas == 2 })
	})},

	{"history-11 forceRedeploy after a failure", past(func(h *history) {
		h.begin()
		h.fail(second)
		h.rollsOnce(func(of *spec) { of.ForceRedeploy = "again" })
	})},

	{"history-13 a rollout completes while paused", past(func(h *history) {
		h.begin()
		h.unpullable(ownImage, "i/o timeout")
		h.change(second, useImage(ownImage))
		h.Run(30 * time.Second)
		h.change(pause(true))
		h.Run(30 * time.Second)
		h.Heal()
		h.within(time.Minute, "S2's Pods", func() bool { return h.serves(ownImage) })
		h.change(pause(false))
		h.gets("2", time.Minute)
		h.lose("not found")
		h.change(variable("3"), useBadImage, entrance("3"))
		h.within(5*time.Minute, "S2 again", func() bool { return h.degraded() && h.runs(ownImage) && h.serves(ownImage) })
		h.keeps("2", 10*time.Minute)
	})},

	{"history-14 a change fails without automatic rollback", past(func(h *history) {
		h.begin()
		h.lose("not found")
		h.change(second, useBadImage, func(of *spec) { of.Rollout = &v1alpha2.Rollout{AutomaticRollback: ptr.To(false)} })
		h.within(2*time.Minute, "Degraded", h.degraded)
		h.during(30*time.Minute, "S2's template, with S1's Pods and entrance", func() bool {
			return h.runs(badImage) && h.serves(oldDefault) && h.now().edition() == "1"
		})
		h.explains(badImage)
	})},

	{"history-15 a port is renamed after a failure", past(func(h *history) {
		h.serve(listen, port("http", 8080, 8080))
		h.fail()
		before := h.tries()
		h.change(port("web", 8080, 8080))
		h.during(untilRetry, "no new try", func() bool { return h.tries() == before })
	})},

	{"history-15 a port gets another number after a failure", past(func(h *history) {
		h.serve(listen, port("http", 8080, 8080))
		h.fail()
		h.rollsOnce(port("http", 8081, 8080))
	})},

	{"history-15 a port gets another targetPort after a failure", past(func(h *history) {
		h.serve(listen, port("http", 8080, 8080))
		h.fail()
		h.rollsOnce(port("http", 8080, 8081))
	})},

	{"history-17 S3 fails, and replaced S2 before S2 was complete", past(func(h *history) {
		h.begin()
		h.unpullable(ownImage, "i/o timeout")
		h.change(second, useImage(ownImage))
		h.Run(30 * time.Second)
		h.lose("not found")
		h.change(variable("3"), useBadImage, entrance("3"))
		h.within(5*time.Minute, "S1 again", func() bool { return h.degraded() && h.runs(oldDefault) && h.serves(oldDefault) })
		h.keeps("1", 10*time.Minute)
	})},

	{"history-17 S3 fails, and replaced S2 when S2 was complete and no operator ran", past(func(h *history) {
		h.begin()
		h.unpullable(ownImage, "i/o timeout")
		h.change(second, useImage(ownImage))
		h.Run(30 * time.Second)
		h.Stop()
		h.lose("not found")
		h.within(time.Minute, "S2's Pods", func() bool { return h.serves(ownImage) })
		h.change(variable("3"), useBadImage, entrance("3"))
		h.Start(0)
		h.within(5*time.Minute, "S2 again", func() bool { return h.degraded() && h.runs(ownImage) && h.serves(ownImage) })
	})},

	{"history-18a the spec is reverted after the status was lost", past(func(h *history) {
		h.begin()
		h.change(second, useImage(ownImage))
		h.within(5*time.Minute, "S2", func() bool { return h.current() && h.now().edition() == "2" })
		h.loseStatus()
		h.Run(time.Minute)
		h.change(variable("1"), useImage(""), entrance("1"))
		h.within(5*time.Minute, "S1", func() bool { return h.current() && h.serves(oldDefault) && h.now().edition() == "1" })
	})},
}

// loseStatus removes the status, like a client that restores the object from a backup.
func (h *history) loseStatus() {
	instance := h.Instance("web")
	instance.Status = v1alpha2.NginxOperatorStatus{}
	key := storage.Key{Resource: storage.NginxOperators, Namespace: world.Namespace, Name: "web"}
	_, err := h.Store.Update(key, storage.ToMap(instance), "status")
	h.Must(err)
}
