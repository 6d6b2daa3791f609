package check

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/api/v1alpha2"
)

// isCurrent reports whether an instance reports that its spec is in effect, and that it lacks
// nothing.
func isCurrent(instance *v1alpha2.NginxOperator) bool {
	ready := conditionOf(instance, v1alpha2.ConditionReady)
	return ready.Status == metav1.ConditionTrue && ready.ObservedGeneration == instance.Generation && !instance.Spec.Paused &&
		conditionOf(instance, v1alpha2.ConditionProgressing).Status == metav1.ConditionFalse &&
		conditionOf(instance, v1alpha2.ConditionDegraded).Status == metav1.ConditionFalse
}

// childrenOf returns the children that an instance controls, by kind and name.
func (s *State) childrenOf(instance *v1alpha2.NginxOperator) map[string]*unstructured.Unstructured {
	out := map[string]*unstructured.Unstructured{}
	for _, child := range s.Children {
		if owner := metav1.GetControllerOf(child); owner != nil && owner.UID == instance.UID {
			out[child.GetKind()+"/"+child.GetName()] = child
		}
	}
	return out
}

// sparse requires that nothing is left over of earlier specs: ConfigMaps, the slices of a rename,
// and ControllerRevisions.
func sparse(s *State, instance *v1alpha2.NginxOperator) string {
	if !isCurrent(instance) {
		return ""
	}
	for key, child := range s.childrenOf(instance) {
		if kind := child.GetKind(); kind == "EndpointSlice" || kind == "ConfigMap" && !s.Mounted[child.GetName()] {
			return key + " is left over"
		}
	}
	d := s.deployment(instance.Name)
	if d == nil || d.Annotations[annotationChange] == "" {
		return "" // a release before 0.8.0 wrote it last
	}
	stored := ptr.Deref(instance.Status.StoredRevision, v1alpha2.StoredRevision{}).Name
	for name := range s.Records {
		if strings.HasPrefix(name, instance.Name+"-") && name != stored {
			return "ControllerRevision/" + name + " is left over"
		}
	}
	return ""
}

// complete requires that the children of an instance that reports no problem are those of the spec.
func complete(s *State, instance *v1alpha2.NginxOperator) string {
	d, spec, children := s.deployment(instance.Name), &instance.Spec, s.childrenOf(instance)
	if !isCurrent(instance) || d == nil {
		return ""
	}
	if got, want := TemplatePods(&d.Spec.Template), DeclaredPods(spec); got != want {
		return fmt.Sprintf("reports no problem, and has the Pods %s, and not %s", got, want)
	}
	for kind, want := range map[string]bool{
		"Service": true, "NetworkPolicy": true, "Ingress": spec.Expose != nil, "HorizontalPodAutoscaler": spec.Autoscaling != nil,
	} {
		if children[kind+"/"+instance.Name] != nil != want {
			return fmt.Sprintf("reports no problem, and %s exists: %t", kind, !want)
		}
	}
	service := children["Service/"+instance.Name]
	got, want := service.GetAnnotations()[note], ptr.Deref(spec.Service, v1alpha2.Service{}).Annotations[note]
	if ingress := children["Ingress/"+instance.Name]; ingress != nil {
		rules, _, _ := unstructured.NestedSlice(ingress.Object, "spec", "rules")
		got, want = got+fmt.Sprint(rules[0].(map[string]any)["host"]), want+spec.Expose.Ingress.Hosts[0].Host
	}
	if got != want {
		return fmt.Sprintf("reports no problem, and has the entrance %s, and not %s", got, want)
	}
	return ""
}

// named requires that the status names each referenced object that does not exist, and that the
// spec needs, or a Pod waits for.
func named(s *State, instance *v1alpha2.NginxOperator) string {
	spec, needed := &instance.Spec, []string{}
	if s.Refuses || spec.Paused {
		return ""
	}
	if spec.Config != nil && spec.Config.ConfigMapRef != nil {
		needed = append(needed, "configmap/"+spec.Config.ConfigMapRef.Name)
	}
	if spec.Content != nil {
		needed = append(needed, "configmap/"+spec.Content.ConfigMapRef.Name)
	}
	for _, pod := range s.Pods {
		if pod.Labels["app.kubernetes.io/instance"] == instance.Name && pod.DeletionTimestamp == nil {
			needed = append(needed, waitsFor(pod)...)
		}
	}
	said := ""
	for _, condition := range instance.Status.Conditions {
		said += condition.Message + "\n"
	}
	for _, blocker := range instance.Status.BlockedBy {
		said += blocker.Message + "\n"
	}
	for _, object := range needed {
		if _, name, _ := strings.Cut(object, "/"); !s.Exists[object] && !strings.Contains(said, fmt.Sprintf("%q", name)) {
			return fmt.Sprintf("does not name the missing %s: %s", object, said)
		}
	}
	return ""
}

// waitsFor returns the missing objects for which the containers of a Pod wait.
func waitsFor(pod *corev1.Pod) (out []string) {
	for i := range pod.Status.ContainerStatuses {
		waiting := ptr.Deref(pod.Status.ContainerStatuses[i].State.Waiting, corev1.ContainerStateWaiting{})
		if found := missingObject.FindStringSubmatch(waiting.Message); found != nil {
			out = append(out, found[1]+"/"+found[2])
		}
	}
	return out
}
