package nginxoperator

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/apply"
	"github.com/example/nginx-operator/internal/nginxconf"
	"github.com/example/nginx-operator/internal/validation"
	"github.com/example/nginx-operator/internal/wellknown"
)

// failure is something that keeps operands from serving: a reason of the API package and a message for the user. The
// message is the same as long as the failure is, so that a status is not written again for a new random Pod name or
// the time in a line of log.
type failure struct {
	reason, message string
}

// applyFailure tells why a child of a spec could not be written, nil without an error. The reason is RolloutInProgress where that
// is no failure but a matter of waiting.
func applyFailure(err error, spec *v1alpha2.NginxOperatorSpec) *failure {
	if err == nil {
		return nil
	}
	if said := validation.Verdict(err, spec, specPath); len(said) > 0 {
		return &failure{v1alpha2.ReasonInvalidConfiguration, said.ToAggregate().Error()}
	}
	if refused := (notPatched{}); errors.As(err, &refused) {
		return &failure{v1alpha2.ReasonInvalidConfiguration, refused.Error()}
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

// inTerminatingNamespace reports whether the API server refused a child because its namespace is being deleted.
func inTerminatingNamespace(err error) bool {
	return apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}

// operandFailure tells why the operands do not serve, nil where nothing is known to be wrong.
func operandFailure(state observed) *failure {
	if found := operandFailures(state); len(found) > 0 {
		return &found[0]
	}
	return nil
}

// operandFailures tells all that keeps operands from serving, the worst first.
func operandFailures(state observed) []failure {
	if state.deployment == nil {
		return nil
	}
	var out []failure
	failing := deploymentCondition(state.deployment, appsv1.DeploymentReplicaFailure)
	if failing != nil && failing.Status == corev1.ConditionTrue {
		message := randomPodName.ReplaceAllString(failing.Message, "Pods are ")
		out = append(out, failure{refusal(message), message})
	}
	for _, pod := range state.pods {
		if found := podFailure(pod); found != nil {
			out = append(out, *found)
		}
	}
	progressing := deploymentCondition(state.deployment, appsv1.DeploymentProgressing)
	if len(out) == 0 && progressing != nil && progressing.Status == corev1.ConditionFalse {
		out = append(out, failure{v1alpha2.ReasonProgressDeadlineExceeded, progressing.Message})
	}
	return out
}

// podFailure tells why a Pod does not serve, nil where nothing is known to be wrong.
func podFailure(pod *corev1.Pod) *failure {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse &&
			condition.Reason == corev1.PodReasonUnschedulable {
			return &failure{v1alpha2.ReasonUnschedulable, "no node can take a Pod: " + condition.Message}
		}
	}
	_, discreet := pod.Annotations[wellknown.AnnotationFiles]
	for i := range pod.Status.InitContainerStatuses {
		status := &pod.Status.InitContainerStatuses[i]
		if found := containerFailure(status, hasSettled(status), discreet); found != nil {
			return found
		}
	}
	for i := range pod.Status.ContainerStatuses {
		status := &pod.Status.ContainerStatuses[i]
		// The startup probe tells a container that came up since its last end from one that runs for a moment between two
		// crashes. That moment must not look like a recovery.
		came := status.State.Running != nil && ptr.Deref(status.Started, false)
		if found := containerFailure(status, status.Ready || came, discreet); found != nil {
			return found
		}
	}
	return nil
}

// hasSettled reports whether an init container has succeeded, or a sidecar runs for longer than a moment between two crashes. A sidecar
// is ready as soon as it runs, any other only when it has succeeded.
func hasSettled(status *corev1.ContainerStatus) bool {
	running := status.State.Running
	return status.Ready && (running == nil || time.Since(running.StartedAt.Time) >= sidecarsSettle*time.Second)
}

// containerFailure tells why a container does not do what it should, nil where nothing is known to be wrong, or was and is no more.
// Where it is discreet, no word is told that could be one of a Secret.
func containerFailure(status *corev1.ContainerStatus, recovered, discreet bool) *failure {
	if recovered {
		return nil
	}
	if waiting := status.State.Waiting; waiting != nil {
		switch waiting.Reason {
		case "ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "ImageInspectError",
			"RegistryUnavailable", "SignatureValidationFailed":
			// The kubelet goes to and fro between the error and "Back-off pulling ...: ErrImagePull: the error".
			_, cause, found := strings.Cut(waiting.Message, "ErrImagePull: ")
			if !found {
				cause = waiting.Message
			}
			whose := ""
			if status.Name != wellknown.OperandContainer {
				whose = fmt.Sprintf(" of container %q", status.Name)
			}
			message := fmt.Sprintf("cannot pull image %q%s: %s", status.Image, whose, cmp.Or(cause, waiting.Reason))
			return &failure{v1alpha2.ReasonImagePullFailed, message}
		case "CreateContainerConfigError", "CreateContainerError", "RunContainerError":
			message := podReference.ReplaceAllString(waiting.Message, "")
			return &failure{v1alpha2.ReasonContainerConfigError, fmt.Sprintf("cannot start container %q: %s", status.Name, message)}
		}
	}
	ended := cmp.Or(status.State.Terminated, status.LastTerminationState.Terminated)
	if ended == nil {
		return nil
	}
	line := tellingLine(ended.Message)
	if discreet {
		line = withoutWordsOfSecrets(line)
	}
	if refused := nginxVerdict(ended.ExitCode, line); refused != nil && status.Name == wellknown.OperandContainer {
		return refused
	}
	if looping := status.RestartCount > 1 || status.State.Waiting != nil && status.State.Waiting.Reason == "CrashLoopBackOff"; !looping {
		return nil
	}
	message := fmt.Sprintf("container %q keeps crashing with exit code %d (%s)", status.Name, ended.ExitCode, ended.Reason)
	if line != "" {
		message += ": " + line
	}
	return &failure{v1alpha2.ReasonCrashLoop, message}
}

var (
	randomPodName = regexp.MustCompile(`pods "[^"]*" is `)
	podReference  = regexp.MustCompile(` \(pod: ".*\)$`)
	// nginxLogPrefix is what an nginx error log line begins with; the time and the process differ from crash to crash.
	nginxLogPrefix = regexp.MustCompile(`^(?:nginx: |\d{4}/\d{2}/\d{2} \d{2}:\d{2}:\d{2} )(\[\w+\]) (?:\d+#\d+: )?`)
	// nginxLocation is where in a configuration nginx found what it tells.
	nginxLocation = regexp.MustCompile(` in (/\S+):(\d+)$`)
	// systemCall begins a message about the machine and not the configuration, such as "bind() to 0.0.0.0:80 failed".
	systemCall = regexp.MustCompile(`^(still could not )?\w+\(.*\)`)
)

// maxLogLine bounds what of nginx's own words, which quote the user's, is told.
const maxLogLine = 512

// tellingLine returns the line that explains the end of nginx: the first with [emerg], else the last.
func tellingLine(log string) string {
	lines := strings.Split(strings.TrimSpace(log), "\n")
	telling := lines[len(lines)-1]
	if i := slices.IndexFunc(lines, func(line string) bool { return strings.Contains(line, "[emerg]") }); i >= 0 {
		telling = lines[i]
	}
	telling = nginxLogPrefix.ReplaceAllString(telling, "$1 ")
	if len(telling) > maxLogLine {
		telling = strings.ToValidUTF8(telling[:maxLogLine], "") + "…"
	}
	return telling
}

// nginxVerdict tells what nginx has against its configuration, nil where it ended for another reason. One exit is enough:
// nginx reads the same text again at the next. A line of the user's text is told as the user counts it, for the file that
// holds the text has nothing else in it. What nginx finds in the operator's own file is the image's fault, and a failed
// system call the machine's; both are told once they come again.
func nginxVerdict(exitCode int32, line string) *failure {
	verdict, refused := strings.CutPrefix(line, "[emerg] ")
	if !refused || exitCode != 1 {
		return nil
	}
	found := nginxLocation.FindStringSubmatch(verdict)
	switch {
	case found == nil && systemCall.MatchString(verdict), found != nil && found[1] == path.Join(nginxconf.Directory, nginxconf.MainFile):
		return nil
	case found != nil && found[1] == path.Join(nginxconf.Directory, nginxconf.ServersFile):
		words := strings.TrimSuffix(verdict, found[0])
		return &failure{v1alpha2.ReasonInvalidConfiguration, fmt.Sprintf("nginx refuses spec.config, line %s: %s", found[2], words)}
	}
	return &failure{v1alpha2.ReasonInvalidConfiguration, "nginx refuses its configuration: " + verdict}
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
