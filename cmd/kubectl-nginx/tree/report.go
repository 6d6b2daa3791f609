// Package tree reports the status of instances, as a structure and as a tree of text. It makes no
// requests.
package tree

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/docs/reference"
	"github.com/example/nginx-operator/internal/defaults"
	"github.com/example/nginx-operator/internal/wellknown"
)

// Report is the status of an instance. `kubectl nginx status -o json` prints its JSON form, which
// docs/guide/kubectl-nginx.md documents.
type Report struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Ready, Reason, and Message are those of the Ready condition. Ready is Unknown until the
	// operator has seen the current generation.
	Ready        string                 `json:"ready"`
	Reason       string                 `json:"reason,omitempty"`
	Message      string                 `json:"message,omitempty"`
	Replicas     Replicas               `json:"replicas"`
	Image        string                 `json:"image,omitempty"`
	URL          string                 `json:"url,omitempty"`
	Addresses    []v1alpha2.Address     `json:"addresses,omitempty"`
	Paused       bool                   `json:"paused,omitempty"`
	PatchedKinds []string               `json:"patchedKinds,omitempty"`
	Conditions   []metav1.Condition     `json:"conditions,omitempty"`
	BlockedBy    []Blocker              `json:"blockedBy,omitempty"`
	Children     []Child                `json:"children,omitempty"`
	Pods         []Pod                  `json:"pods,omitempty"`
	Certificates []v1alpha2.Certificate `json:"certificates,omitempty"`
	// Revisions are the stored revisions and the revisions that were rolled back, newest first.
	Revisions []Revision `json:"revisions,omitempty"`
	// Forbidden has the permissions that the user lacks. The report has no objects that need them.
	Forbidden []Forbidden `json:"forbidden,omitempty"`
}

// Forbidden is a permission that the user lacks in the namespace of the instance.
type Forbidden struct {
	Verb string `json:"verb"`
	// Resource has the API group, as in deployments.apps.
	Resource string `json:"resource"`
	// Message is the API server's error.
	Message string `json:"message"`
}

// Details are the child objects and Pods of an instance.
type Details struct {
	// Children has the child objects that exist.
	Children map[v1alpha2.RelatedObject]client.Object
	// Unknown are the child objects that the user has no permission to read.
	Unknown   []v1alpha2.RelatedObject
	Pods      []corev1.Pod
	Forbidden []Forbidden
}

// Replicas counts Pods.
type Replicas struct {
	Desired int32 `json:"desired"`
	Ready   int32 `json:"ready"`
	Updated int32 `json:"updated"`
}

// Blocker is an entry of status.blockedBy, with the usual remedy for its reason.
type Blocker struct {
	v1alpha2.Blocker `json:",inline"`

	// Remedy has the JSON name of older releases, because fields are never renamed.
	Remedy string `json:"wayOut,omitempty"`
}

// Child is a child object of an instance.
type Child struct {
	v1alpha2.RelatedObject `json:",inline"`

	// State describes the state of the object, or is "" if there is nothing to report.
	State string `json:"state,omitempty"`
}

// Pod is a Pod of an instance.
type Pod struct {
	Name     string      `json:"name"`
	State    string      `json:"state"`
	Ready    bool        `json:"ready"`
	Restarts int32       `json:"restarts"`
	Node     string      `json:"node,omitempty"`
	Image    string      `json:"image,omitempty"`
	Created  metav1.Time `json:"created"`
}

// Revision is the last good revision, one that was rolled back, or the one that is being applied.
type Revision struct {
	Name string `json:"name"`
	// State is LastGood, Failed, or Current if it is neither.
	State   string      `json:"state"`
	Image   string      `json:"image,omitempty"`
	Reason  string      `json:"reason,omitempty"`
	Message string      `json:"message,omitempty"`
	Time    metav1.Time `json:"time"`
}

// The states of a Revision.
const (
	LastGood = "LastGood"
	Failed   = "Failed"
	Current  = "Current"
)

// Of returns the report of an instance without child objects, Pods, and revisions.
func Of(object *v1alpha2.NginxOperator) Report {
	status := &object.Status
	report := Report{
		Namespace: object.Namespace, Name: object.Name, Ready: string(metav1.ConditionUnknown), Image: status.Image, URL: status.URL,
		Replicas:  Replicas{Desired: defaults.Replicas(&object.Spec), Ready: status.ReadyReplicas, Updated: status.UpdatedReplicas},
		Addresses: status.Addresses, Paused: object.Spec.Paused, PatchedKinds: status.PatchedKinds, Conditions: status.Conditions,
		Certificates: status.Certificates, Message: "the operator has not seen this generation yet",
	}

	ready := meta.FindStatusCondition(status.Conditions, v1alpha2.ConditionReady)
	if ready != nil && ready.ObservedGeneration == object.Generation {
		report.Ready, report.Reason, report.Message = string(ready.Status), ready.Reason, ready.Message
	}

	for _, blocker := range status.BlockedBy {
		remedy := reference.Remedy(blocker.Reason)
		if blocker.Reason == v1alpha2.ReasonPaused {
			remedy = fmt.Sprintf("kubectl nginx resume %s -n %s", object.Name, object.Namespace)
		}
		report.BlockedBy = append(report.BlockedBy, Blocker{blocker, remedy})
	}

	return report
}

// WithDetails returns the report of an instance with its child objects, Pods, and revisions.
func WithDetails(object *v1alpha2.NginxOperator, details Details) Report {
	report, current := Of(object), ""
	report.Forbidden = details.Forbidden
	for _, related := range object.Status.RelatedObjects {
		state := "unknown"
		if !slices.Contains(details.Unknown, related) {
			state = stateOf(details.Children[related])
		}

		report.Children = append(report.Children, Child{related, state})
		if deployment, ok := details.Children[related].(*appsv1.Deployment); ok {
			report.Replicas.Desired = ptr.Deref(deployment.Spec.Replicas, 1)
			current = deployment.Annotations[wellknown.AnnotationChange]
		}
	}

	for i := range details.Pods {
		report.Pods = append(report.Pods, podOf(&details.Pods[i]))
	}

	slices.SortFunc(report.Pods, func(a, b Pod) int { return strings.Compare(a.Name, b.Name) })
	report.Revisions = revisionsOf(object, current)
	return report
}

func stateOf(child client.Object) string {
	switch child := child.(type) {
	case nil:
		return "missing"
	case *appsv1.Deployment:
		status := child.Status
		return fmt.Sprintf("%d of %d ready, %d updated", status.ReadyReplicas, ptr.Deref(child.Spec.Replicas, 1), status.UpdatedReplicas)
	case *corev1.Service:
		var ports []string
		for _, port := range child.Spec.Ports {
			ports = append(ports, fmt.Sprint(port.Port)+optional(":%d", port.NodePort))
		}
		return fmt.Sprintf("%s %s", child.Spec.Type, strings.Join(ports, ","))
	case *networkingv1.Ingress:
		var hosts []string
		for _, rule := range child.Spec.Rules {
			hosts = append(hosts, cmp.Or(rule.Host, "*"))
		}
		return strings.Join(hosts, ",")
	case *policyv1.PodDisruptionBudget:
		return fmt.Sprintf("disruptions allowed: %d", child.Status.DisruptionsAllowed)
	case *autoscalingv2.HorizontalPodAutoscaler:
		return fmt.Sprintf("%d replicas of %d to %d", child.Status.CurrentReplicas, ptr.Deref(child.Spec.MinReplicas, 1), child.Spec.MaxReplicas)
	}
	return ""
}

func podOf(pod *corev1.Pod) Pod {
	status := &pod.Status
	state := cmp.Or(status.Reason, string(status.Phase))
	report := Pod{Name: pod.Name, State: state, Node: pod.Spec.NodeName, Created: pod.CreationTimestamp}
	for _, condition := range status.Conditions {
		switch {
		case condition.Type == corev1.PodReady:
			report.Ready = condition.Status == corev1.ConditionTrue
		case condition.Type == corev1.PodScheduled && condition.Reason == corev1.PodReasonUnschedulable:
			report.State = condition.Reason
		}
	}

	for i := range pod.Spec.Containers {
		if pod.Spec.Containers[i].Name == wellknown.OperandContainer {
			report.Image = pod.Spec.Containers[i].Image
		}
	}

	for _, container := range slices.Concat(status.InitContainerStatuses, status.ContainerStatuses) {
		report.Restarts += container.RestartCount
		if waiting := container.State.Waiting; waiting != nil && waiting.Reason != "PodInitializing" && waiting.Reason != "" {
			report.State = waiting.Reason
		}
	}

	if pod.DeletionTimestamp != nil {
		report.State = "Terminating"
	}

	return report
}

func revisionsOf(object *v1alpha2.NginxOperator, current string) []Revision {
	var revisions []Revision
	for _, failed := range object.Status.FailedRevisions {
		revisions = append(revisions, Revision{
			Name: failed.Revision, State: Failed, Reason: failed.Reason, Message: failed.Message, Time: failed.Time,
		})
	}

	if good := object.Status.LastGoodRevision; good != nil && good.Revision != "" {
		revisions = append(revisions, Revision{Name: good.Revision, State: LastGood, Image: good.Image, Time: good.Time})
	}

	slices.SortFunc(revisions, func(a, b Revision) int {
		return cmp.Or(b.Time.Compare(a.Time.Time), strings.Compare(a.Name, b.Name))
	})

	name := object.Name + "-" + current
	if current != "" && !slices.ContainsFunc(revisions, func(revision Revision) bool { return revision.Name == name }) {
		revisions = slices.Insert(revisions, 0, Revision{Name: name, State: Current})
	}

	return revisions
}
