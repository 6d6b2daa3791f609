package simulation

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/test/simulation/storage"
	"github.com/example/nginx-operator/test/simulation/world"
)

// answers requires that no request fails since a resource version. A client sends one at each write
// of the cluster, to each Ingress and to these ports of the Service.
func (h *history) answers(since int64, numbers ...int32) {
	h.replay(since, func(now view) string {
		asked := slices.Clone(numbers)
		if ingress, found := get[networkingv1.Ingress](now, storage.Ingresses); found {
			asked = append(asked, ingress.Spec.Rules[0].HTTP.Paths[0].Backend.Service.Port.Number)
		}
		for _, number := range asked {
			if problem := now.request(number); problem != "" {
				return fmt.Sprintf("a request to port %d fails: %s", number, problem)
			}
		}
		return ""
	})
}

// request returns why a request to a port of the Service may fail, or "". Each ready endpoint must
// answer.
func (in view) request(number int32) string {
	service, _ := get[corev1.Service](in, storage.Services)
	ports := service.Spec.Ports
	at := slices.IndexFunc(ports, func(port corev1.ServicePort) bool { return port.Port == number })
	if at < 0 {
		return "the Service has no such port"
	}
	endpoints := 0
	for _, slice := range list[discoveryv1.EndpointSlice](in, storage.EndpointSlices) {
		if slice.Labels[discoveryv1.LabelServiceName] != "web" {
			continue
		}
		for _, port := range slice.Ports {
			if ptr.Deref(port.Name, "") != ports[at].Name {
				continue
			}
			for _, endpoint := range slice.Endpoints {
				if !ptr.Deref(endpoint.Conditions.Ready, true) {
					continue
				}
				endpoints++
				if problem := in.connect(endpoint.TargetRef.Name, *port.Port); problem != "" {
					return problem
				}
			}
		}
	}
	if endpoints == 0 {
		return "no endpoint is ready"
	}
	return ""
}

// connect returns why a Pod does not answer on a port, or "".
func (in view) connect(name string, number int32) string {
	found := in[storage.Key{Resource: storage.Pods, Namespace: world.Namespace, Name: name}]
	if found == nil {
		return "Pod " + name + " does not exist"
	}
	pod := storage.As[corev1.Pod](found)
	listens := slices.ContainsFunc(pod.Spec.Containers, func(container corev1.Container) bool {
		return slices.ContainsFunc(container.Ports, func(port corev1.ContainerPort) bool { return port.ContainerPort == number })
	})
	if !listens || !world.IsReady(pod) {
		return fmt.Sprintf("Pod %s does not serve %d", name, number)
	}
	for _, policy := range list[networkingv1.NetworkPolicy](in, storage.NetworkPolicies) {
		if !labels.SelectorFromSet(policy.Spec.PodSelector.MatchLabels).Matches(labels.Set(pod.Labels)) {
			continue
		}
		admits := slices.ContainsFunc(policy.Spec.Ingress, func(rule networkingv1.NetworkPolicyIngressRule) bool {
			return slices.ContainsFunc(rule.Ports, func(port networkingv1.NetworkPolicyPort) bool { return in.numberOf(*port.Port) == number })
		})
		if !admits {
			return fmt.Sprintf("NetworkPolicy %s does not admit %d", policy.Name, number)
		}
	}
	return ""
}

// entrances has the histories of ports.
var entrances = []tale{
	{"history-1 a new port is reachable only as its spec declares it", past(func(h *history) {
		h.serve()
		before := h.Store.Revision()
		h.change(useImage(ownImage), onPort(9000), entrance("2"))
		h.within(5*time.Minute, "S2, with only port 9000", func() bool {
			now := h.now()
			return h.serves(ownImage) && now.edition() == "2" && slices.Equal(now.numbers(), []int32{9000}) && len(now.peers()) == 1
		})
		served := false
		h.replay(before, func(now view) string {
			served = served || now.serves(ownImage)
			switch peers := now.peers(); {
			case !slices.Contains([]string{"", "2"}, peers[9000]) || !served && peers[8080] != "none":
				return fmt.Sprintf("the NetworkPolicy has %v", peers)
			case !served && (now.host() != "none" || now.annotation() != "none"):
				return fmt.Sprintf("before S2 serves, the Service has the edition %s, and the Ingress %s", now.annotation(), now.host())
			}
			return ""
		})
	})},

	{"history-1b the port behind an Ingress gets another number", past(func(h *history) {
		h.serve(onPort(8080), entrance("1"))
		before := h.Store.Revision()
		h.change(onPort(9000))
		h.within(5*time.Minute, "only port 9000", func() bool { return h.current() && slices.Equal(h.now().numbers(), []int32{9000}) })
		h.Run(time.Minute)
		h.answers(before)
	})},
}
