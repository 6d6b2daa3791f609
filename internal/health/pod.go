package health

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/failure"
	"github.com/example/nginx-operator/internal/nginxlog"
	"github.com/example/nginx-operator/internal/wellknown"
)

// SidecarSettleSeconds is minReadySeconds of a Pod with sidecars, which have no probe. Otherwise a
// rollout would replace all Pods before a sidecar that crashes soon after its start is noticed.
const SidecarSettleSeconds = 10

// PodFailure returns why a Pod does not serve, or nil if no failure is known.
func PodFailure(pod *corev1.Pod) *failure.Failure {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse &&
			condition.Reason == corev1.PodReasonUnschedulable {
			return &failure.Failure{Reason: v1alpha2.ReasonUnschedulable, Message: "no node can run a Pod: " + condition.Message}
		}
	}

	for i := range pod.Status.InitContainerStatuses {
		status := &pod.Status.InitContainerStatuses[i]
		if found := containerFailure(pod, status, hasSettled(status)); found != nil {
			return found
		}
	}

	for i := range pod.Status.ContainerStatuses {
		status := &pod.Status.ContainerStatuses[i]
		// A container that runs for a moment between two crashes has passed no startup probe.
		hasStarted := status.State.Running != nil && ptr.Deref(status.Started, false)
		if found := containerFailure(pod, status, status.Ready || hasStarted); found != nil {
			return found
		}
	}

	return nil
}

// hasSettled reports whether an init container has succeeded, or a sidecar has run for
// SidecarSettleSeconds. A sidecar is ready as soon as it runs, also between two crashes.
func hasSettled(status *corev1.ContainerStatus) bool {
	running := status.State.Running
	return status.Ready && (running == nil || time.Since(running.StartedAt.Time) >= SidecarSettleSeconds*time.Second)
}

// kubeletRetries ends the message about an error of the kubelet that can pass.
const kubeletRetries = "; the kubelet retries"

// containerFailure returns why a container of a Pod does not run, or nil if no failure is known or
// the container has recovered. It withholds words that may quote a Secret.
func containerFailure(pod *corev1.Pod, status *corev1.ContainerStatus, recovered bool) *failure.Failure {
	if recovered {
		return nil
	}

	if waiting := status.State.Waiting; waiting != nil {
		switch waiting.Reason {
		case "ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "ImageInspectError",
			"RegistryUnavailable", "SignatureValidationFailed":
			// The kubelet alternates between the error and "Back-off ...: ErrImagePull: the error".
			_, cause, isBackOff := strings.Cut(waiting.Message, "ErrImagePull: ")
			if !isBackOff {
				cause = waiting.Message
			}

			whose := ""
			if status.Name != wellknown.OperandContainer {
				whose = fmt.Sprintf(" of container %q", status.Name)
			}

			message := fmt.Sprintf("cannot pull image %q%s: %s", status.Image, whose, cmp.Or(cause, waiting.Reason))
			return &failure.Failure{Reason: v1alpha2.ReasonImagePullFailed, Message: message, Certain: missingImage.MatchString(message)}
		case "CreateContainerConfigError", "CreateContainerError", "RunContainerError":
			raw := podReference.ReplaceAllString(waiting.Message, "")
			message, hint := publicFromKubelet(pod, raw)
			passes := kubeletPasses.MatchString(raw)
			switch {
			case passes:
				message, hint = raw, kubeletRetries
			case runsAsRoot.MatchString(raw):
				hint += runAsUserRemedy
			}

			return &failure.Failure{
				Reason:  v1alpha2.ReasonContainerConfigError,
				Message: fmt.Sprintf("cannot start container %q: %s%s", status.Name, message, hint), Passes: passes,
			}
		}
	}

	ended := cmp.Or(status.State.Terminated, status.LastTerminationState.Terminated)
	if ended == nil {
		return nil
	}

	line, hint := publicFromLog(pod, nginxlog.TellingLine(ended.Message), status.Name)
	if refused := nginxVerdict(ended.ExitCode, line); refused != nil && status.Name == wellknown.OperandContainer {
		refused.Message += hint
		refused.Certain = refused.Certain || crashes(status) >= enoughCrashes
		return refused
	}

	if looping := status.RestartCount > 1 || status.State.Waiting != nil && status.State.Waiting.Reason == "CrashLoopBackOff"; !looping {
		return nil
	}

	message := fmt.Sprintf("container %q keeps crashing with exit code %d (%s)", status.Name, ended.ExitCode, ended.Reason)
	if line != "" {
		message += ": " + line + hint
	}
	if ended.Reason == "OOMKilled" {
		message += ". Raise the memory limit of the container"
	}

	return &failure.Failure{Reason: v1alpha2.ReasonCrashLoop, Message: message, Certain: crashes(status) >= enoughCrashes}
}

// enoughCrashes is the number of crashes of a container after which its Pod template has failed.
const enoughCrashes = 3

// crashes returns how often a container has ended.
func crashes(status *corev1.ContainerStatus) int32 {
	if status.State.Terminated != nil || status.State.Waiting != nil && status.LastTerminationState.Terminated != nil {
		return status.RestartCount + 1 // the restart has not happened yet
	}
	return status.RestartCount
}

// missingImage matches messages of registries and container runtimes about an image that does not
// exist or whose name is invalid. A registry that does not answer may do so a moment later.
var missingImage = regexp.MustCompile(`not found|not exist|manifest unknown|InvalidImageName|invalid reference`)

// HasEnded reports whether all containers of a Pod have ended for good. Such a Pod may exist for a
// long time, for example after an eviction.
func HasEnded(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
}

// IsReady reports whether the condition Ready of a Pod is True.
func IsReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(condition corev1.PodCondition) bool {
		return condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue
	})
}
