package nginxoperator

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/apply"
)

// failure is something that keeps operands from serving: a reason of the API package and a message for the user. The
// message is the same as long as the failure is, so that a status is not written again for a new random Pod name or
// the time in a line of log.
type failure struct {
	reason, message string
}

// applyFailure tells why a child could not be written, nil without an error. The reason is RolloutInProgress where that
// is no failure but a matter of waiting.
func applyFailure(err error) *failure {
	if err == nil {
		return nil
	}
	reason := v1alpha2.ReasonAPIError
	found := apply.IsNotOurs(err)
	switch {
	case found != nil && found.Predecessor:
		reason = v1alpha2.ReasonRolloutInProgress
	case found != nil:
		reason = v1alpha2.ReasonNameConflict
	case inTerminatingNamespace(err):
		reason = v1alpha2.ReasonNamespaceTerminating
	case apierrors.IsForbidden(err):
		reason = refusal(err.Error())
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		reason = v1alpha2.ReasonInvalidChild
	}
	return &failure{reason, err.Error()}
}

// inTerminatingNamespace tells whether the API server refused a child because its namespace is being deleted.
func inTerminatingNamespace(err error) bool {
	return apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}

// operandFailure tells why the operands do not serve, nil where nothing is known to be wrong.
func operandFailure(state observed) *failure {
	if state.deployment == nil {
		return nil
	}
	if condition := deploymentCondition(state.deployment, appsv1.DeploymentReplicaFailure); condition != nil && condition.Status == corev1.ConditionTrue {
		message := randomPodName.ReplaceAllString(condition.Message, "Pods are ")
		return &failure{refusal(message), message}
	}
	for _, pod := range state.pods {
		if found := podFailure(pod); found != nil {
			return found
		}
	}
	if condition := deploymentCondition(state.deployment, appsv1.DeploymentProgressing); condition != nil && condition.Status == corev1.ConditionFalse {
		return &failure{v1alpha2.ReasonProgressDeadlineExceeded, condition.Message}
	}
	return nil
}

// podFailure tells why a Pod does not serve, nil where nothing is known to be wrong.
func podFailure(pod *corev1.Pod) *failure {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse && condition.Reason == corev1.PodReasonUnschedulable {
			return &failure{v1alpha2.ReasonUnschedulable, "no node can take a Pod: " + condition.Message}
		}
	}
	for i := range pod.Status.ContainerStatuses {
		if found := containerFailure(&pod.Status.ContainerStatuses[i]); found != nil {
			return found
		}
	}
	return nil
}

func containerFailure(status *corev1.ContainerStatus) *failure {
	if status.Ready {
		return nil
	}
	if waiting := status.State.Waiting; waiting != nil {
		switch waiting.Reason {
		case "ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "ImageInspectError", "RegistryUnavailable", "SignatureValidationFailed":
			// The kubelet goes to and fro between the error and "Back-off pulling ...: ErrImagePull: the error".
			_, cause, found := strings.Cut(waiting.Message, "ErrImagePull: ")
			if !found {
				cause = waiting.Message
			}
			return &failure{v1alpha2.ReasonImagePullFailed, fmt.Sprintf("cannot pull image %q: %s", status.Image, cmp.Or(cause, waiting.Reason))}
		case "CreateContainerConfigError", "CreateContainerError", "RunContainerError":
			message := podReference.ReplaceAllString(waiting.Message, "")
			return &failure{v1alpha2.ReasonContainerConfigError, fmt.Sprintf("cannot start container %q: %s", status.Name, message)}
		}
	}
	// Between two crashes the container runs for a moment; that must not look like a recovery.
	looping := status.RestartCount > 1 || status.State.Waiting != nil && status.State.Waiting.Reason == "CrashLoopBackOff"
	ended := cmp.Or(status.State.Terminated, status.LastTerminationState.Terminated)
	if !looping || ended == nil {
		return nil
	}
	message := fmt.Sprintf("container %q ends again and again with exit code %d (%s)", status.Name, ended.ExitCode, ended.Reason)
	if line := lastLogLine(ended.Message); line != "" {
		message += ": " + line
	}
	return &failure{v1alpha2.ReasonCrashLoop, message}
}

var (
	randomPodName = regexp.MustCompile(`pods "[^"]*" is `)
	podReference  = regexp.MustCompile(` \(pod: ".*\)$`)
	// nginxLogPrefix is what an nginx error log line begins with and what differs from crash to crash.
	nginxLogPrefix = regexp.MustCompile(`^\d{4}/\d{2}/\d{2} \d{2}:\d{2}:\d{2} (\[\w+\]) \d+#\d+: `)
)

// lastLogLine returns the line that explains the end of nginx: the last with [emerg], else the last.
func lastLogLine(log string) string {
	lines := strings.Split(strings.TrimSpace(log), "\n")
	last := lines[len(lines)-1]
	for _, line := range lines {
		if strings.Contains(line, "[emerg]") {
			last = line
		}
	}
	return nginxLogPrefix.ReplaceAllString(last, "$1 ")
}

// refusal tells a quota from any other reason for which the API server forbids an object.
func refusal(message string) string {
	if strings.Contains(message, "exceeded quota") {
		return v1alpha2.ReasonQuotaExceeded
	}
	return v1alpha2.ReasonForbidden
}

func deploymentCondition(deployment *appsv1.Deployment, conditionType appsv1.DeploymentConditionType) *appsv1.DeploymentCondition {
	for i := range deployment.Status.Conditions {
		if deployment.Status.Conditions[i].Type == conditionType {
			return &deployment.Status.Conditions[i]
		}
	}
	return nil
}
