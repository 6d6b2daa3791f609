package kube

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/test/simulation/storage"
)

// replicaSet creates and deletes the Pods of a ReplicaSet.
func (k *Kube) replicaSet(rs *appsv1.ReplicaSet) {
	if rs.DeletionTimestamp != nil {
		return
	}
	pods := slices.DeleteFunc(controlled[corev1.Pod](k, storage.Pods, rs), func(pod *corev1.Pod) bool {
		return pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodFailed
	})
	// Pods that are not ready are deleted first, then the youngest.
	slices.SortStableFunc(pods, func(a, b *corev1.Pod) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), a.CreationTimestamp.Compare(b.CreationTimestamp.Time))
	})
	want := int(*rs.Spec.Replicas)
	for range want - len(pods) {
		pods = append(pods, k.newPod(rs))
	}
	for _, pod := range pods[want:] {
		k.remove(storage.Pods, pod, false)
	}
	pods = pods[:want]
	status := appsv1.ReplicaSetStatus{ObservedGeneration: rs.Generation, Replicas: int32(len(pods))} //nolint:gosec // a few
	for _, pod := range pods {
		if rank(pod) != 0 {
			continue
		}
		status.ReadyReplicas++
		if due := readySince(pod).Add(time.Duration(rs.Spec.MinReadySeconds) * time.Second); k.Store.Now().Before(due) {
			k.after(due)
		} else {
			status.AvailableReplicas++
		}
	}
	if !equality.Semantic.DeepEqual(rs.Status, status) {
		rs.Status = status
		k.write(storage.ReplicaSets, rs, "status")
	}
}

// rank returns 0 for a ready Pod, and 1 for any other Pod.
func rank(pod *corev1.Pod) int {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue {
			return 0
		}
	}
	return 1
}

// readySince returns the time since which a ready Pod is ready.
func readySince(pod *corev1.Pod) (since time.Time) {
	for i := range pod.Status.ContainerStatuses {
		if running := pod.Status.ContainerStatuses[i].State.Running; running != nil && running.StartedAt.Add(startTime).After(since) {
			since = running.StartedAt.Add(startTime)
		}
	}
	return since
}

func (k *Kube) newPod(rs *appsv1.ReplicaSet) *corev1.Pod {
	pod := &corev1.Pod{Spec: *rs.Spec.Template.Spec.DeepCopy()}
	for isFree := false; !isFree; isFree = k.Store.Get(keyOf(storage.Pods, pod)) == nil {
		k.pods++
		pod.Namespace, pod.Name = rs.Namespace, fmt.Sprintf("%s-%05d", rs.Name, k.pods)
	}
	pod.Labels, pod.Annotations = maps.Clone(rs.Spec.Template.Labels), maps.Clone(rs.Spec.Template.Annotations)
	pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(rs, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))}
	k.create(storage.Pods, pod)
	return pod
}

// pod replaces the scheduler and a kubelet.
func (k *Kube) pod(pod *corev1.Pod) {
	now := k.Store.Now()
	if pod.DeletionTimestamp != nil {
		asked := pod.DeletionTimestamp.Add(-time.Duration(ptr.Deref(pod.DeletionGracePeriodSeconds, 0)) * time.Second)
		if end := asked.Add(endTime); now.Before(end) {
			k.after(end)
			return
		}
		k.remove(storage.Pods, pod, true)
		return
	}
	if pod.Spec.NodeName == "" && !k.Faults.Unschedulable {
		pod.Spec.NodeName = "node"
		k.write(storage.Pods, pod, "")
		return
	}
	status := corev1.PodStatus{Phase: corev1.PodPending}
	if pod.Spec.NodeName == "" {
		status.Conditions = []corev1.PodCondition{{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: "0/1 nodes are available",
		}}
	} else {
		k.containers(pod, &status)
	}
	status.StartTime = pod.Status.StartTime
	if status.StartTime == nil && pod.Spec.NodeName != "" {
		status.StartTime = ptr.To(at(now))
	}
	if !equality.Semantic.DeepEqual(pod.Status, status) {
		pod.Status = status
		k.write(storage.Pods, pod, "status")
	}
}

// containers sets the container statuses of a Pod on a node.
func (k *Kube) containers(pod *corev1.Pod, status *corev1.PodStatus) {
	ready := corev1.ConditionTrue
	for i := range pod.Spec.Containers {
		container := k.container(pod, &pod.Spec.Containers[i])
		if !container.Ready {
			ready = corev1.ConditionFalse
		}
		if container.State.Running != nil {
			status.Phase = corev1.PodRunning
		}
		status.ContainerStatuses = append(status.ContainerStatuses, container)
	}
	status.Conditions = []corev1.PodCondition{
		{Type: corev1.PodScheduled, Status: corev1.ConditionTrue},
		{Type: corev1.PodReady, Status: ready},
	}
}

func (k *Kube) container(pod *corev1.Pod, spec *corev1.Container) corev1.ContainerStatus {
	out := corev1.ContainerStatus{Name: spec.Name, Image: spec.Image, Started: ptr.To(false)}
	wait := func(reason, message string) corev1.ContainerStatus {
		out.State.Waiting = &corev1.ContainerStateWaiting{Reason: reason, Message: message}
		return out
	}
	before := corev1.ContainerStatus{}
	for i := range pod.Status.ContainerStatuses {
		if pod.Status.ContainerStatuses[i].Name == spec.Name {
			before = pod.Status.ContainerStatuses[i]
		}
	}
	runs := before.State.Running != nil
	switch missing := k.missing(pod, spec); {
	case runs:
	case k.Faults.Unpullable[spec.Image] != "":
		return wait("ImagePullBackOff", "Back-off pulling image: ErrImagePull: "+k.Faults.Unpullable[spec.Image])
	case missing.volume != "":
		return wait("ContainerCreating", "")
	case missing.env != "":
		return wait("CreateContainerConfigError", missing.env)
	case k.Faults.StartError.Reason != "":
		return wait(k.Faults.StartError.Reason, k.Faults.StartError.Message)
	case spec.Name == "nginx" && k.exits(pod, &before, &out):
		return out
	}
	if spec.Name == "nginx" && k.Faults.Crashes != nil && k.Faults.Crashes(pod) {
		out.RestartCount = max(before.RestartCount, 3)
		out.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: 139, Reason: "Error", Message: "segmentation fault"}
		return wait("CrashLoopBackOff", "back-off restarting failed container")
	}
	out.RestartCount = max(out.RestartCount, before.RestartCount)
	out.LastTerminationState = cmp.Or(out.LastTerminationState, before.LastTerminationState)
	started := at(k.Store.Now())
	if runs {
		started = before.State.Running.StartedAt
	}
	out.State.Running = &corev1.ContainerStateRunning{StartedAt: started}
	if due := started.Add(startTime); k.Store.Now().Before(due) {
		k.after(due)
	} else {
		out.Ready, out.Started = true, ptr.To(true)
	}
	return out
}

const (
	// endedTime is the time for which the kubelet reports an ended container before it waits.
	// firstBackOff is its first delay before a restart, which doubles up to maxBackOff.
	endedTime    = time.Second
	firstBackOff = 10 * time.Second
	maxBackOff   = 5 * time.Minute
	// exitCode is the exit code of nginx after an error message.
	exitCode = 1
)

// exits sets the status of a container that has exited when it started, and reports whether it
// does not run.
func (k *Kube) exits(pod *corev1.Pod, before, out *corev1.ContainerStatus) bool {
	message := ""
	if k.Faults.Exits != nil {
		message = k.Faults.Exits(pod)
	}
	now, ended := k.Store.Now(), cmp.Or(before.State.Terminated, before.LastTerminationState.Terminated)
	if ended != nil && ended.ExitCode != exitCode {
		ended = nil // a crash of Faults.Crashes
	}
	out.RestartCount = before.RestartCount
	switch {
	case ended == nil && message == "":
		return false
	case ended == nil:
		out.State.Terminated = k.exit(message)
		return true
	}
	waits := ended.FinishedAt.Add(endedTime)
	restarts := ended.FinishedAt.Add(min(firstBackOff<<before.RestartCount, maxBackOff))
	switch {
	case now.Before(waits):
		out.State.Terminated = ended
		k.after(waits)
		return true
	case now.Before(restarts):
		out.State.Waiting = &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: "back-off restarting failed container"}
		out.LastTerminationState.Terminated = ended
		k.after(restarts)
		return true
	}
	out.RestartCount++
	out.LastTerminationState.Terminated = ended
	if message != "" {
		out.State.Terminated = k.exit(message)
	}
	return message != ""
}

// exit returns the state of a container that exits now.
func (k *Kube) exit(message string) *corev1.ContainerStateTerminated {
	now := at(k.Store.Now())
	k.after(now.Add(endedTime))
	return &corev1.ContainerStateTerminated{ExitCode: exitCode, Reason: "Error", Message: message, StartedAt: now, FinishedAt: now}
}

// absent is a missing ConfigMap or Secret of a container.
type absent struct{ volume, env string }

// missing returns the ConfigMap or Secret that a container waits for.
func (k *Kube) missing(pod *corev1.Pod, container *corev1.Container) absent {
	has := func(of *storage.Resource, name string, optional *bool) bool {
		return ptr.Deref(optional, false) || k.Store.Get(storage.Key{Resource: of, Namespace: pod.Namespace, Name: name}) != nil
	}
	for _, volume := range pod.Spec.Volumes {
		sources := []corev1.VolumeProjection{{}}
		if volume.Projected != nil {
			sources = volume.Projected.Sources
		}
		if volume.ConfigMap != nil && !has(storage.ConfigMaps, volume.ConfigMap.Name, volume.ConfigMap.Optional) {
			return absent{volume: volume.ConfigMap.Name}
		}
		if volume.Secret != nil && !has(storage.Secrets, volume.Secret.SecretName, volume.Secret.Optional) {
			return absent{volume: volume.Secret.SecretName}
		}
		for _, source := range sources {
			if source.ConfigMap != nil && !has(storage.ConfigMaps, source.ConfigMap.Name, source.ConfigMap.Optional) {
				return absent{volume: source.ConfigMap.Name}
			}
			if source.Secret != nil && !has(storage.Secrets, source.Secret.Name, source.Secret.Optional) {
				return absent{volume: source.Secret.Name}
			}
		}
	}
	for _, env := range container.Env {
		from := ptr.Deref(env.ValueFrom, corev1.EnvVarSource{})
		if from.SecretKeyRef != nil && !has(storage.Secrets, from.SecretKeyRef.Name, from.SecretKeyRef.Optional) {
			return absent{env: fmt.Sprintf("secret %q not found", from.SecretKeyRef.Name)}
		}
		if from.ConfigMapKeyRef != nil && !has(storage.ConfigMaps, from.ConfigMapKeyRef.Name, from.ConfigMapKeyRef.Optional) {
			return absent{env: fmt.Sprintf("configmap %q not found", from.ConfigMapKeyRef.Name)}
		}
	}
	return absent{}
}
