package world

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/example/nginx-operator/test/simulation/kube"
	"github.com/example/nginx-operator/test/simulation/storage"
)

// clusterActions returns faults, and actions on Pods and on the operator.
func clusterActions() []Action {
	return []Action{
		{"evict a Pod", func(w *World, r *rand.Rand) {
			if pods := w.Store.List(storage.Pods, Namespace); len(pods) > 0 {
				w.Remove(storage.Pods, pods[r.IntN(len(pods))].Name)
			}
		}},
		{"crash Pods", func(w *World, r *rand.Rand) { w.crashPods(r) }},
		{"lose an image", func(w *World, r *rand.Rand) { w.lose(ownImage(r), r) }},
		{"have no nodes", func(w *World, _ *rand.Rand) { w.setNodes(false) }},
		{"heal the cluster", func(w *World, _ *rand.Rand) { w.Heal() }},
		{"refuse a kind by quota", func(w *World, r *rand.Rand) { w.refuse(someKind(r), false) }},
		{"refuse a kind by policy", func(w *World, r *rand.Rand) { w.refuse(someKind(r), true) }},
		{"lag", func(w *World, r *rand.Rand) {
			kinds := storage.Resources()
			w.Faults.Lag = map[*storage.Resource]time.Duration{
				kinds[r.IntN(len(kinds))]: time.Duration(r.IntN(5000)) * time.Millisecond,
				kinds[r.IntN(len(kinds))]: time.Duration(r.IntN(5000)) * time.Millisecond,
			}
		}},
		{"relist", func(w *World, _ *rand.Rand) { w.Faults.Relist = 0.05 }},
		{"conflict", func(w *World, _ *rand.Rand) { w.Faults.Conflict = 0.2 }},
		{"time out", func(w *World, _ *rand.Rand) { w.Faults.Timeout, w.Faults.Lost = 0.1, 0.1 }},
		{"crash the operator", func(w *World, _ *rand.Rand) { w.Faults.Crash = 0.05 }},
		{"crash to an older view", func(w *World, _ *rand.Rand) { w.Faults.Crash, w.Faults.OldView = 0.1, true }},
		{"restart the operator", func(w *World, _ *rand.Rand) { w.Restart(0) }},
		{"restart on an older view", func(w *World, r *rand.Rand) {
			w.Restart(w.revisionBefore(time.Duration(r.IntN(60)) * time.Second))
		}},
		{"release", func(w *World, r *rand.Rand) { w.release(r) }},
	}
}

// crashPods selects a Pod, and makes all Pods crash whose names end with the same character. It
// returns the instance of the selected Pod, or "" if there is no Pod.
func (w *World) crashPods(r *rand.Rand) string {
	pods := w.Store.List(storage.Pods, Namespace)
	if len(pods) == 0 {
		return ""
	}
	last := func(name string) byte { return name[len(name)-1] }
	name := pods[r.IntN(len(pods))].Name
	w.Kube.Faults.Crashes = func(pod *corev1.Pod) bool { return last(pod.Name) == last(name) }
	w.Kube.Changed()
	instance, _, _ := strings.Cut(name, "-")
	return instance
}

// lose makes an image unavailable, either permanently or because its registry does not respond.
func (w *World) lose(image string, r *rand.Rand) {
	w.Kube.Faults.Unpullable = map[string]string{image: []string{"not found", "i/o timeout"}[r.IntN(2)]}
	w.Kube.Changed()
}

// setNodes sets whether nodes accept new Pods.
func (w *World) setNodes(exist bool) {
	w.Kube.Faults.Unschedulable = !exist
	w.Kube.Changed()
}

// release replaces the operator with a release that has another default image.
func (w *World) release(r *rand.Rand) {
	w.Release.Image = fmt.Sprintf("registry.example/nginx:%d", r.IntN(9))
	w.Released = append(w.Released, time.Now())
	w.Inputs++
	w.Restart(0)
}

// revisionBefore returns the newest resource version of some time ago.
func (w *World) revisionBefore(ago time.Duration) int64 {
	at, out := time.Now().Add(-ago), int64(1)
	for _, version := range w.Store.Since(0) {
		if version.At.After(at) {
			break
		}
		out = version.Revision
	}
	return out
}

// someKind returns a random kind that the operator writes.
func someKind(r *rand.Rand) *storage.Resource {
	kinds := []*storage.Resource{
		storage.ConfigMaps, storage.Services, storage.Deployments, storage.Ingresses, storage.NetworkPolicies, storage.PodDisruptionBudgets,
	}
	return kinds[r.IntN(len(kinds))]
}

// refuse makes the API server reject writes of a kind, by a policy or by a quota.
func (w *World) refuse(of *storage.Resource, policy bool) {
	err := error(apierrors.NewForbidden(of.GroupResource(), "", fmt.Errorf("exceeded quota: q, requested: count/%s=1", of.Name())))
	if policy {
		err = Denied(of, "some")
	}
	w.Faults.Refuse = map[*storage.Resource]error{of: err}
}

// Denied returns the error of a ValidatingAdmissionPolicy that denies an object. The API server
// returns it with the status code of an invalid object.
func Denied(of *storage.Resource, name string) error {
	return DeniedWith(of, name, http.StatusUnprocessableEntity, metav1.StatusReasonInvalid,
		"ValidatingAdmissionPolicy 'labels' with binding 'labels' denied request: the label team is missing")
}

// DeniedWith returns the error of an admission policy or webhook with its own code, reason, and
// message.
func DeniedWith(of *storage.Resource, name string, code int32, reason metav1.StatusReason, message string) error {
	err := apierrors.NewForbidden(of.GroupResource(), name, errors.New(message))
	err.ErrStatus.Reason, err.ErrStatus.Code = reason, code
	if strings.HasPrefix(message, "admission webhook ") {
		err.ErrStatus.Message = message // ToStatusErr of k8s.io/apiserver/pkg/admission/plugin/webhook/errors
	}
	return err
}

// Heal ends all faults.
func (w *World) Heal() {
	w.Faults, w.Store.Admit = Faults{}, nil
	w.Kube.Faults = kube.Faults{}
	w.Kube.Changed()
}

// Recover ends all faults, restores the referenced objects, and resumes Deployments.
func (w *World) Recover() {
	w.Heal()
	w.resume()
	w.Must(w.Write(ConfigMap("conf", "nginx.conf", server("return 200;"))))
	w.Must(w.Write(ConfigMap("pages", "index.html", "last")))
	w.Must(w.Write(token()))
}
