package operand

import (
	"cmp"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/example/nginx-operator/internal/cached"
	"github.com/example/nginx-operator/internal/health"
)

// NewRunning returns the running ports of an object. service has the ports of its Service. exposed
// is the port number that its HTTPRoute or Ingress references, or 0. replicaSets and pods have the
// labels of the object, which any client can set. Those of its Deployment, which can be nil, have
// the controller as well. A Pod that is being deleted serves until it has ended.
func NewRunning(
	service []corev1.ServicePort, exposed int32, deployment *appsv1.Deployment, replicaSets []*appsv1.ReplicaSet, pods []*corev1.Pod,
) Running {
	running := Running{Service: service, exposed: exposed, ready: sets.New[int32]()}
	own := sets.New[types.UID]()
	for _, set := range replicaSets {
		if deployment != nil && metav1.IsControlledBy(set, deployment) {
			own.Insert(set.UID)
		}
	}

	replicaSets = slices.SortedFunc(slices.Values(replicaSets), func(a, b *appsv1.ReplicaSet) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), strings.Compare(a.Name, b.Name))
	})

	pods = slices.SortedFunc(slices.Values(pods), func(a, b *corev1.Pod) int { return strings.Compare(a.Name, b.Name) })

	seen := sets.New[ContainerPort]()
	add := func(ports []ContainerPort, own bool) {
		if own {
			running.own = append(running.own, ports...)
		}
		for _, port := range ports {
			if !seen.Has(port) {
				seen.Insert(port)
				running.Containers = append(running.Containers, port)
			}
		}
	}

	for _, set := range replicaSets {
		if template := cached.TemplateOf(set); health.WantsPods(set) {
			add(ContainerPortsOf(template.Annotations, &template.Spec), own.Has(set.UID))
		}
	}

	for _, pod := range pods {
		if health.HasEnded(pod) {
			continue
		}

		ports := ContainerPortsOf(pod.Annotations, &pod.Spec)
		controller := metav1.GetControllerOfNoCopy(pod)
		add(ports, controller != nil && own.Has(controller.UID))
		if pod.DeletionTimestamp == nil && controller != nil {
			running.addPod(ports, health.IsReady(pod))
		}
	}

	running.everywhere = running.everywhere.Intersection(running.ready)
	return running
}

// Running has the ports of the running Pods and of the live Service.
type Running struct {
	// Containers has the container ports of Pods and of ReplicaSets that request Pods, oldest first.
	Containers []ContainerPort
	// own has the container ports of the Pods and ReplicaSets of the instance's Deployment.
	own []ContainerPort
	// Service has the ports of the Service, or nil if it does not exist.
	Service []corev1.ServicePort
	// ServiceVersion is the resource version of the Service, or "". Port names are computed from it.
	ServiceVersion string
	// pods is the number of Pods that are not being deleted, and everywhere has the port numbers
	// that all of them and a ready one serve.
	pods       int
	everywhere sets.Set[int32]
	// ready has the numbers of the Service that ready Pods serve.
	ready sets.Set[int32]
	// unreached has a number that ready Pods serve, and that has no endpoints yet.
	unreached sets.Set[int32]
	// exposed is the port number that the HTTPRoute or Ingress references, or 0 if neither exists.
	exposed int32
}

// IsReady reports whether a ready Pod serves a number of the Service.
func (now *Running) IsReady(number int32) bool { return now.ready.Has(number) }

// addPod adds a Pod that is not being deleted.
func (now *Running) addPod(ports []ContainerPort, isReady bool) {
	numbers := sets.New[int32]()
	for _, port := range ports {
		if port.Name != HealthPort {
			numbers.Insert(port.Number)
		}
	}

	if now.pods == 0 {
		now.everywhere = numbers
	} else {
		now.everywhere = now.everywhere.Intersection(numbers)
	}

	now.pods++
	if isReady {
		now.ready.Insert(numbers.UnsortedList()...)
	}
}

// ContainerPort is a port of Pods: its name, the number in the Service, and the number that the
// Pods listen on, which may differ between revisions.
type ContainerPort struct {
	Name            string
	Number, Listens int32
}
