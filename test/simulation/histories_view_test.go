package simulation

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/example/nginx-operator/test/simulation/storage"
	"github.com/example/nginx-operator/test/simulation/world"
)

// view is a state of the cluster: the objects that users and clients see, by key.
type view map[storage.Key]*storage.Version

func (in view) follow(version *storage.Version) {
	in[version.Key] = version
	if version.Deleted {
		delete(in, version.Key)
	}
}

// now returns the current state.
func (h *history) now() view {
	out := view{}
	for _, of := range []*storage.Resource{
		storage.Services, storage.NetworkPolicies, storage.Ingresses, storage.EndpointSlices, storage.Pods,
	} {
		for _, version := range h.Store.List(of, world.Namespace) {
			out.follow(version)
		}
	}
	return out
}

// replay requires a property at the present and at each write since a resource version. The
// function returns the problem, or "". It reports the first problem.
func (h *history) replay(since int64, problem func(view) string) {
	in := view{}
	for _, version := range h.Store.Since(0) {
		in.follow(version)
		if version.Revision < since {
			continue
		}
		if text := problem(in); text != "" {
			h.errorf("at %s, %s; at the end: %s", version.At.Format(time.TimeOnly), text, h.seen())
			return
		}
	}
}

// get returns the object of a kind with the name "web", and whether it exists.
func get[T any, P storage.Typed[T]](in view, of *storage.Resource) (P, bool) {
	if found := in[storage.Key{Resource: of, Namespace: world.Namespace, Name: "web"}]; found != nil {
		return storage.As[T, P](found), true
	}
	return new(T), false
}

func list[T any, P storage.Typed[T]](in view, of *storage.Resource) (out []P) {
	for key, version := range in {
		if key.Resource == of {
			out = append(out, storage.As[T, P](version))
		}
	}
	return out
}

// ready returns the ready Pods that are not being deleted.
func (in view) ready() []*corev1.Pod {
	return slices.DeleteFunc(list[corev1.Pod](in, storage.Pods), func(pod *corev1.Pod) bool {
		return pod.Labels["app.kubernetes.io/instance"] != "web" || pod.DeletionTimestamp != nil || !world.IsReady(pod)
	})
}

// only reports whether Pods are ready, all with a property.
func (in view) only(has func(*corev1.PodSpec) bool) bool {
	pods := in.ready()
	return len(pods) > 0 && !slices.ContainsFunc(pods, func(pod *corev1.Pod) bool { return !has(&pod.Spec) })
}

// serves reports whether Pods are ready, all with an image.
func (in view) serves(image string) bool {
	return in.only(func(pod *corev1.PodSpec) bool { return pod.Containers[0].Image == image })
}

// servesEdition reports whether Pods are ready, all with an edition.
func (in view) servesEdition(edition string) bool {
	return in.only(func(pod *corev1.PodSpec) bool { return editionOf(pod) == edition })
}

// editionOf returns the edition of a Pod template.
func editionOf(pod *corev1.PodSpec) string {
	for _, env := range pod.Containers[0].Env {
		if env.Name == "EDITION" {
			return env.Value
		}
	}
	return ""
}

// firstHealthPort is higher than all numbers that the histories serve.
const firstHealthPort = 18080

// peers returns the editions that the NetworkPolicy admits, by the number of the port. The edition
// of a port that is open to all peers is "none".
func (in view) peers() map[int32]string {
	policy, _ := get[networkingv1.NetworkPolicy](in, storage.NetworkPolicies)
	out := map[int32]string{}
	for _, rule := range policy.Spec.Ingress {
		edition := "none"
		if len(rule.From) > 0 {
			edition = rule.From[0].PodSelector.MatchLabels["edition"]
		}
		for _, port := range rule.Ports {
			number := in.numberOf(*port.Port)
			if out[number] != "" && out[number] != edition {
				edition = out[number] + "+" + edition
			}
			if number < firstHealthPort {
				out[number] = edition
			}
		}
	}
	return out
}

// numberOf returns the number of a port in a NetworkPolicy. Release 0.6.0 wrote names.
func (in view) numberOf(port intstr.IntOrString) int32 {
	for _, pod := range list[corev1.Pod](in, storage.Pods) {
		for _, declared := range pod.Spec.Containers[0].Ports {
			if port.Type == intstr.String && declared.Name == port.StrVal {
				return declared.ContainerPort
			}
		}
	}
	return port.IntVal
}

// annotation returns the edition of the Service, "none", or "absent".
func (in view) annotation() string {
	service, found := get[corev1.Service](in, storage.Services)
	if !found {
		return "absent"
	}
	return cmp.Or(service.Annotations["example.com/edition"], "none")
}

// host returns the edition of the Ingress, or "none".
func (in view) host() string {
	ingress, found := get[networkingv1.Ingress](in, storage.Ingresses)
	if !found {
		return "none"
	}
	edition, _, _ := strings.Cut(ingress.Spec.Rules[0].Host, ".")
	return edition
}

// edition returns the edition of the Service, the NetworkPolicy, and the Ingress, or all three if
// they differ.
func (in view) edition() string {
	peers := strings.Join(slices.Compact(slices.Sorted(maps.Values(in.peers()))), "+")
	editions := []string{in.annotation(), cmp.Or(peers, "absent"), in.host()}
	if same := slices.Compact(slices.Clone(editions)); len(same) == 1 {
		return same[0]
	}
	return fmt.Sprintf("Service %s, NetworkPolicy %s, Ingress %s", editions[0], editions[1], editions[2])
}

// numbers returns the sorted port numbers of the Service.
func (in view) numbers() (out []int32) {
	service, _ := get[corev1.Service](in, storage.Services)
	for _, port := range service.Spec.Ports {
		out = append(out, port.Port)
	}
	slices.Sort(out)
	return out
}
