package world

import (
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/test/simulation/check"
)

// reach requires that a number of a Service keeps a ready endpoint while one of its ready endpoints
// still serves, and the operator can know it.
func (a *audit) reach() {
	for name, one := range a.instances {
		if one.service == nil {
			one.reached = nil
			continue
		}
		reached := a.endpoints(one)
		for number, pods := range one.reached {
			isServed := slices.ContainsFunc(one.service.Spec.Ports, func(port corev1.ServicePort) bool { return port.Port == number })
			serves := slices.IndexFunc(pods, func(pod string) bool { return IsReady(a.pods[pod]) && a.isSeen(a.pods[pod]) })
			if isServed && len(reached[number]) == 0 && serves >= 0 {
				a.errorf("%s: port %d of the Service has no ready endpoint, and Pod %s serves it", name, number, pods[serves])
			}
		}
		one.reached = reached
	}
}

// endpoints returns the ready endpoints of each number of the Service.
func (a *audit) endpoints(one *audited) map[int32][]string {
	out := map[int32][]string{}
	for _, slice := range one.slices {
		for _, port := range slice.Ports {
			at := slices.IndexFunc(one.service.Spec.Ports, func(of corev1.ServicePort) bool { return of.Name == ptr.Deref(port.Name, "") })
			for _, endpoint := range slice.Endpoints {
				pod := a.pods[ptr.Deref(endpoint.TargetRef, corev1.ObjectReference{}).Name]
				if at < 0 || !ptr.Deref(endpoint.Conditions.Ready, true) || !IsReady(pod) {
					continue
				}
				if number := one.service.Spec.Ports[at].Port; check.Serves(pod, number) {
					out[number] = append(out[number], pod.Name)
				}
			}
		}
	}
	return out
}

// isSeen reports whether the operator sees a Pod as it is.
func (a *audit) isSeen(pod *corev1.Pod) bool {
	version, err := strconv.ParseInt(pod.ResourceVersion, 10, 64)
	return err != nil || a.podsView == 0 || version <= a.podsView
}

// IsReady reports whether a Pod exists and is ready.
func IsReady(pod *corev1.Pod) bool {
	return pod != nil && slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// isUnproven reports whether the rollout of Pods has failed that never served, although others of
// the Deployment served before: it has stalled, or a Pod proves it.
func (a *audit) isUnproven(one *audited) bool {
	fails := one.stalls && !time.Now().Before(one.due)
	for _, pod := range a.pods {
		fails = fails || a.isOf(one, pod) && failsForGood(pod)
	}
	return fails && len(one.known) > 0 && !one.known[one.pods] && one.replaces()
}

// failsForGood reports whether the image of a Pod does not exist, or a container has crashed three
// times.
func failsForGood(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.ContainerStatuses, func(of corev1.ContainerStatus) bool {
		waits := of.State.Waiting
		return waits != nil && (waits.Reason == "CrashLoopBackOff" && of.RestartCount >= 3 ||
			waits.Reason == "ImagePullBackOff" && strings.HasSuffix(waits.Message, "not found"))
	})
}
