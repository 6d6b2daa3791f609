package controller

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/examples/activity/api/v1"
)

const (
	managedBy = "app.kubernetes.io/managed-by"
	operator  = "activity-operator"
	container = "activity"
	// gate is the scheduling gate that prevents a Pod from running until the Activity's status
	// records it.
	gate = "ego.example.com/recorded"
)

// podName returns the name of an Activity's Pod. It is a DNS label that is derived from the
// Activity's name and UID.
func podName(activity *v1.Activity) string {
	sum := sha256.Sum256([]byte(activity.UID))
	suffix := "-" + hex.EncodeToString(sum[:5])
	return strings.TrimRight(activity.Name[:min(len(activity.Name), 63-len(suffix))], "-.") + suffix
}

// desiredPod returns the Pod of an Activity. The Pod has no token and no capabilities, and runs as
// root only if execuser or the image requires it.
func desiredPod(activity *v1.Activity, image string) *corev1.Pod {
	spec := &activity.Spec
	uid, gid, _ := strings.Cut(spec.Execuser, ":")
	pod := &corev1.Pod{}
	pod.Namespace, pod.Name, pod.Labels = activity.Namespace, podName(activity), map[string]string{managedBy: operator}
	pod.Spec = corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever, SchedulingGates: []corev1.PodSchedulingGate{{Name: gate}},
		AutomountServiceAccountToken: ptr.To(false), EnableServiceLinks: ptr.To(false),
		SecurityContext: &corev1.PodSecurityContext{
			RunAsUser: id(uid), RunAsGroup: id(gid),
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
		Containers: []corev1.Container{{
			Name: container, Image: image, Command: []string{"/bin/sh", "-c", literal(spec.Command)}, WorkingDir: spec.Execcwd,
			SecurityContext: &corev1.SecurityContext{
				AllowPrivilegeEscalation: ptr.To(false),
				Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
			},
		}},
	}
	if ptr.Deref(id(uid), 0) != 0 {
		pod.Spec.SecurityContext.RunAsNonRoot = ptr.To(true)
	}
	for _, env := range spec.Envs {
		key, value, _ := strings.Cut(env, "=")
		pod.Spec.Containers[0].Env = append(pod.Spec.Containers[0].Env, corev1.EnvVar{Name: key, Value: literal(value)})
	}
	if spec.Host != "" {
		// Unlike spec.nodeName, node affinity makes the scheduler respect taints and resources.
		field := corev1.NodeSelectorRequirement{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{spec.Host}}
		terms := []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{field}}}
		required := &corev1.NodeSelector{NodeSelectorTerms: terms}
		pod.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: required}}
	}
	return pod
}

// id returns the number of a user or group, or nil if text is not a number.
func id(text string) *int64 {
	if n, err := strconv.ParseInt(text, 10, 32); err == nil {
		return &n
	}
	return nil
}

// literal prevents the kubelet from expanding $(NAME), which is a command substitution for the
// shell.
func literal(text string) string { return strings.ReplaceAll(text, "$", "$$") }

// computeStatus returns the status of an unfinished Activity from its Pod.
func computeStatus(status v1.ActivityStatus, pod *corev1.Pod) v1.ActivityStatus {
	state := corev1.ContainerState{}
	for _, one := range pod.Status.ContainerStatuses {
		if one.Name == container {
			state = one.State
		}
	}
	status.Pod, status.Message = pod.Name, ""
	// The process can end while the Pod continues, because other clients can add containers to it.
	switch ended, phase := state.Terminated, pod.Status.Phase; {
	case phase == corev1.PodFailed, ended != nil && ended.ExitCode != 0:
		status.Prosta, status.Message = v1.Failed, cmp.Or(reason(pod, state), "the Pod failed")
	case phase == corev1.PodSucceeded, ended != nil:
		status.Prosta = v1.Succeeded
	case phase == corev1.PodRunning:
		status.Prosta = v1.Running
	default:
		status.Prosta, status.Message = v1.Pending, reason(pod, state)
	}
	if state.Running != nil {
		status.StartTime = &state.Running.StartedAt
	}
	if ended := state.Terminated; ended != nil {
		status.ExitCode = &ended.ExitCode
		// A container that failed to start has a termination state without a start time.
		if !ended.StartedAt.IsZero() {
			status.StartTime = &ended.StartedAt
		}
		if !ended.FinishedAt.IsZero() {
			status.FinishTime = &ended.FinishedAt
		}
	}
	return status
}

// reason returns why a Pod waits or failed: the message of the kubelet or the scheduler, or the
// exit code. It returns "" if there is none.
func reason(pod *corev1.Pod, state corev1.ContainerState) string {
	text := cmp.Or(pod.Status.Message, pod.Status.Reason) // evicted, for example
	if state.Waiting != nil {
		text = cmp.Or(text, state.Waiting.Message)
	}
	if ended := state.Terminated; ended != nil {
		code := fmt.Sprintf("exit code %d", ended.ExitCode)
		if ended.Reason != "" && ended.Reason != "Error" {
			code += ", " + ended.Reason
		}
		text = cmp.Or(text, ended.Message, code)
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Reason == corev1.PodReasonUnschedulable {
			text = cmp.Or(text, condition.Message)
		}
	}
	return text
}
