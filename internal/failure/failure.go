// Package failure describes why an NginxOperator is not as its spec declares: a reason and a
// message for the user.
package failure

import (
	"strings"
	"unicode/utf8"

	"github.com/example/nginx-operator/api/v1alpha2"
)

// Failure is a difference between the spec and the running state.
type Failure struct {
	// Reason is one of the reasons of the API package.
	Reason string
	// Message is for the user, and has any length. It does not change while the failure lasts: it
	// has no random Pod names and no times, so that the status is written once.
	Message string
	// Passes makes CanPass true for any reason.
	Passes bool
	// Certain means that the failure of a Pod proves at once that its Pod template cannot start.
	// Any other failure of a Pod counts at the progress deadline.
	Certain bool
	// Final means that no later attempt can succeed, because nginx refuses the text of the change.
	Final bool
}

// CanPass reports whether a failure can pass without a change of the spec or of a referenced
// object. The operator retries such a failure with back-off. It does not roll back before the
// progress deadline, and does not stop a fleet rollout.
func (f *Failure) CanPass() bool {
	switch f.Reason {
	case v1alpha2.ReasonAPIError, v1alpha2.ReasonRolloutInProgress, v1alpha2.ReasonUnschedulable:
		return true
	}
	return f.Passes
}

// Blockers returns failures as entries of status.blockedBy, with truncated messages.
func Blockers(failures []Failure) []v1alpha2.Blocker {
	var blockers []v1alpha2.Blocker
	for _, failure := range failures {
		blockers = append(blockers, v1alpha2.Blocker{Reason: failure.Reason, Message: Truncate(failure.Message)})
	}
	return blockers
}

// MaxMessage is the limit of a message in bytes, as for the note of an Event.
const MaxMessage = 1024

const ellipsis = "…"

// Truncate returns valid UTF-8 of at most MaxMessage bytes.
func Truncate(message string) string {
	message = strings.ToValidUTF8(message, "\uFFFD")
	if len(message) <= MaxMessage {
		return message
	}

	end := MaxMessage - len(ellipsis)
	for !utf8.RuneStart(message[end]) {
		end--
	}
	return message[:end] + ellipsis
}
