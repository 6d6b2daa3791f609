package objectcache

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/internal/cached"
	"github.com/example/nginx-operator/internal/nginxlog"
	"github.com/example/nginx-operator/internal/wellknown"
)

// slimReplicaSet keeps the number of the revision and the mounted ConfigMaps. If the ReplicaSet has
// replicas, it also keeps the ports.
func slimReplicaSet(in any) (any, error) {
	replicaSet, ok := in.(*appsv1.ReplicaSet)
	if !ok {
		return in, nil
	}
	labels, annotations := selectorOf(replicaSet.Labels), numbersOf(replicaSet.Annotations)
	identify(&replicaSet.ObjectMeta, controllerOf(&replicaSet.ObjectMeta))
	replicaSet.Labels, replicaSet.Annotations = labels, annotations
	spec := appsv1.ReplicaSetSpec{Replicas: replicaSet.Spec.Replicas}
	spec.Template.Spec.Volumes = slimVolumes(replicaSet.Spec.Template.Spec.Volumes)
	if ptr.Deref(spec.Replicas, 0) > 0 {
		spec.Template.Annotations = servicePortsOf(replicaSet.Spec.Template.Annotations)
		spec.Template.Spec.Containers = servingContainer(replicaSet.Spec.Template.Spec.Containers)
	}
	replicaSet.Spec = spec
	replicaSet.Status = appsv1.ReplicaSetStatus{}
	return in, nil
}

// slimPod keeps the ports of a Pod, whether the Pod can read Secrets, and the reasons why the Pod
// is not ready: its conditions and the states of its containers.
func slimPod(in any) (any, error) {
	pod, ok := in.(*corev1.Pod)
	if !ok {
		return in, nil
	}
	labels, annotations := selectorOf(pod.Labels), servicePortsOf(pod.Annotations)
	if cached.MaySeeSecrets(pod) {
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[cached.AnnotationSecrets] = ""
	}
	identify(&pod.ObjectMeta, controllerOf(&pod.ObjectMeta))
	pod.Labels, pod.Annotations = labels, annotations
	pod.Spec = corev1.PodSpec{Containers: servingContainer(pod.Spec.Containers)}
	pod.Status = corev1.PodStatus{
		Phase:                 pod.Status.Phase,
		Conditions:            slimConditions(pod.Status.Conditions),
		ContainerStatuses:     slimContainers(pod.Status.ContainerStatuses),
		InitContainerStatuses: slimContainers(pod.Status.InitContainerStatuses),
	}
	return in, nil
}

// slimConditions keeps whether a Pod is ready, and why it is not scheduled.
func slimConditions(conditions []corev1.PodCondition) []corev1.PodCondition {
	var out []corev1.PodCondition
	for _, condition := range conditions[:min(len(conditions), maxConditions)] {
		if condition.Type != corev1.PodReady && condition.Type != corev1.PodScheduled {
			continue
		}
		kept := corev1.PodCondition{Type: condition.Type, Status: condition.Status}
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
			kept.Reason, kept.Message = condition.Reason, condition.Message
			cut(&kept.Reason, &kept.Message)
		}
		out = append(out, kept)
	}
	return out
}

func slimContainers(statuses []corev1.ContainerStatus) []corev1.ContainerStatus {
	var out []corev1.ContainerStatus
	for _, status := range statuses[:min(len(statuses), maxContainers)] {
		kept := corev1.ContainerStatus{
			Name: status.Name, Image: status.Image, Ready: status.Ready, Started: status.Started, RestartCount: status.RestartCount,
			State: slimState(status.State), LastTerminationState: slimState(status.LastTerminationState),
		}
		cut(&kept.Image)
		out = append(out, kept)
	}
	return out
}

// slimState keeps the start of a running container, and why a container waits or has ended. Of a
// log, it keeps the line that explains the end.
func slimState(state corev1.ContainerState) corev1.ContainerState {
	var out corev1.ContainerState
	if state.Running != nil {
		out.Running = &corev1.ContainerStateRunning{StartedAt: state.Running.StartedAt}
	}
	if waiting := state.Waiting; waiting != nil {
		out.Waiting = &corev1.ContainerStateWaiting{Reason: waiting.Reason, Message: waiting.Message}
		cut(&out.Waiting.Reason, &out.Waiting.Message)
	}
	if ended := state.Terminated; ended != nil {
		message := ended.Message
		cut(&message)
		out.Terminated = &corev1.ContainerStateTerminated{ExitCode: ended.ExitCode, Reason: ended.Reason, Message: nginxlog.TellingLine(message)}
		cut(&out.Terminated.Reason)
	}
	return out
}

// servingContainer keeps the ports of the nginx container, or returns nil if it has none.
func servingContainer(containers []corev1.Container) []corev1.Container {
	at := slices.IndexFunc(containers, func(container corev1.Container) bool { return container.Name == wellknown.OperandContainer })
	if at < 0 || len(containers[at].Ports) == 0 {
		return nil
	}
	ports := containers[at].Ports[:min(len(containers[at].Ports), maxPorts)]
	kept := make([]corev1.ContainerPort, 0, len(ports))
	for _, port := range ports {
		kept = append(kept, corev1.ContainerPort{Name: port.Name, ContainerPort: port.ContainerPort})
	}
	return []corev1.Container{{Name: wellknown.OperandContainer, Ports: kept}}
}

// servicePortsOf keeps the annotation with the container ports that have another number in the
// Service.
func servicePortsOf(annotations map[string]string) map[string]string {
	return only(annotations, wellknown.AnnotationServicePorts, wellknown.MaxServicePorts)
}

// only keeps one annotation. It returns nil if the annotation does not exist, or if its value has
// more bytes than the limit.
func only(annotations map[string]string, key string, limit int) map[string]string {
	value, found := annotations[key]
	if !found || len(value) > limit {
		return nil
	}
	return map[string]string{key: value}
}

// selectorOf keeps the labels that select the Pods of an instance and of a revision.
func selectorOf(labels map[string]string) map[string]string {
	out := map[string]string{}
	for _, key := range []string{
		wellknown.LabelName, wellknown.LabelInstance, wellknown.LabelManagedBy, appsv1.DefaultDeploymentUniqueLabelKey,
	} {
		if value, found := labels[key]; found {
			out[key] = value
		}
	}
	return out
}
