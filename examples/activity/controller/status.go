package controller

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/example/nginx-operator/examples/activity/api/v1"
)

// computeStatus returns the status of an Activity whose Pod is this one, nil where it is gone. What is final stays, and so
// does what is known already of a Pod that tells less than before.
func computeStatus(before v1.ActivityStatus, pod *corev1.Pod) v1.ActivityStatus {
	if before.Finished() {
		return before
	}
	out := *before.DeepCopy()
	if pod == nil {
		out.Prosta = v1.Failed
		out.Message = fmt.Sprintf("Pod %q was deleted before its end was seen; an Activity does not run twice", before.Pod)
		return out
	}
	out.Pod = pod.Name
	out.Prosta, out.Message = process(pod)
	state := containerState(pod)
	if running := state.Running; running != nil {
		out.StartTime = running.StartedAt.DeepCopy()
	}
	if ended := state.Terminated; ended != nil {
		out.ExitCode = &ended.ExitCode
		// A container that could not be started has ended without having begun.
		if !ended.StartedAt.IsZero() {
			out.StartTime = ended.StartedAt.DeepCopy()
		}
		if !ended.FinishedAt.IsZero() {
			out.FinishTime = ended.FinishedAt.DeepCopy()
		}
	}
	return out
}

// refused returns the status of an Activity that cannot be run. It is final.
func refused(before v1.ActivityStatus, message string) v1.ActivityStatus {
	out := *before.DeepCopy()
	out.Prosta, out.Message = v1.Failed, message
	return out
}

// waiting returns the status of an Activity whose Pod could not be made yet.
func waiting(before v1.ActivityStatus, message string) v1.ActivityStatus {
	out := *before.DeepCopy()
	out.Prosta, out.Message = v1.Pending, message
	return out
}

// process returns the state of the process in a Pod, and in words why it waits or failed. A process that has ended has
// ended, even where the Pod goes on because others have added containers to it.
func process(pod *corev1.Pod) (v1.Prosta, string) {
	state, phase := containerState(pod), pod.Status.Phase
	switch {
	case phase == corev1.PodFailed:
		return v1.Failed, failure(pod, state.Terminated)
	case phase == corev1.PodSucceeded, state.Terminated != nil && state.Terminated.ExitCode == 0:
		return v1.Succeeded, ""
	case state.Terminated != nil:
		return v1.Failed, failure(pod, state.Terminated)
	case phase == corev1.PodRunning:
		return v1.Running, ""
	}
	if waits := state.Waiting; waits != nil && waits.Message != "" {
		return v1.Pending, waits.Reason + ": " + waits.Message
	}
	scheduled := slices.IndexFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodScheduled })
	if scheduled >= 0 && pod.Status.Conditions[scheduled].Status == corev1.ConditionFalse {
		return v1.Pending, pod.Status.Conditions[scheduled].Message
	}
	return v1.Pending, ""
}

// failure says why a Pod failed: what the kubelet says of the Pod (it was evicted, its node shut down), else of the
// container (it was out of memory, it could not be started), else the exit code alone.
func failure(pod *corev1.Pod, ended *corev1.ContainerStateTerminated) string {
	if text := cmp.Or(pod.Status.Message, pod.Status.Reason); text != "" {
		return text
	}
	if ended == nil {
		return "the Pod failed without a word of its container"
	}
	if ended.Message != "" {
		return ended.Reason + ": " + ended.Message
	}
	if ended.Reason != "" && ended.Reason != "Error" {
		return fmt.Sprintf("exit code %d, %s", ended.ExitCode, ended.Reason)
	}
	return fmt.Sprintf("exit code %d", ended.ExitCode)
}

// containerState returns the state of the container in which the command runs, empty where there is none yet.
func containerState(pod *corev1.Pod) corev1.ContainerState {
	for i := range pod.Status.ContainerStatuses {
		if status := &pod.Status.ContainerStatuses[i]; status.Name == containerName {
			return status.State
		}
	}
	return corev1.ContainerState{}
}

// told returns the Events that a change of the status is worth: the Pod was made, and the process has ended.
func told(before, after v1.ActivityStatus) []notice {
	var out []notice
	if before.Pod == "" && after.Pod != "" {
		out = append(out, notice{corev1.EventTypeNormal, v1.ReasonCreated, fmt.Sprintf("runs in Pod %q", after.Pod)})
	}
	if !before.Finished() {
		switch after.Prosta {
		case v1.Succeeded:
			out = append(out, notice{corev1.EventTypeNormal, v1.ReasonSucceeded, "exit code 0"})
		case v1.Failed:
			out = append(out, notice{corev1.EventTypeWarning, v1.ReasonFailed, after.Message})
		}
	}
	return out
}

// notice is one Event.
type notice struct{ eventType, reason, message string }
