package rollout

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/defaults"
	"github.com/example/nginx-operator/internal/failure"
)

// The cause of a failed rollout may pass, for example a quota. So a failed revision is attempted
// again, unless nginx refuses its text.

const (
	// firstDelay is the time between the first failure of a revision and the next attempt. It
	// doubles with each failure, up to maxDelay.
	firstDelay = 2 * time.Minute
	maxDelay   = time.Hour
	// maxAttempts is the schema's limit of attempts in status.failedRevisions.
	maxAttempts = 1_000_000
)

// failedAgain returns the status of a revision whose rollout has just failed. before is its status
// from an earlier attempt, or nil.
func failedAgain(revision, reason, message string, final bool, before *v1alpha2.FailedRevision, now time.Time) *v1alpha2.FailedRevision {
	failed := &v1alpha2.FailedRevision{
		Revision: revision, Reason: reason, Message: failure.Truncate(message), Time: metav1.NewTime(now), Attempts: 1,
	}
	if before != nil {
		failed.Attempts = min(nextAttempt(before), maxAttempts)
	}
	if !final {
		failed.NextAttemptTime = ptr.To(metav1.NewTime(now.Add(delayAfter(failed.Attempts)).Truncate(time.Second)))
	}
	return failed
}

// nextAttempt returns the number of the attempt after the failures of a revision. Releases before
// 0.8.0 made one attempt, and did not count it.
func nextAttempt(failed *v1alpha2.FailedRevision) int32 { return max(failed.Attempts, 1) + 1 }

// delayAfter returns the time between the last of a number of failures and the next attempt.
func delayAfter(attempts int32) time.Duration {
	delay := firstDelay
	for range attempts - 1 {
		if delay *= 2; delay >= maxDelay {
			return maxDelay
		}
	}
	return delay
}

// attempts reports whether a failed revision of an object is rolled out again: an attempt has
// started or is due. Without Pods there is nothing to attempt.
func attempts(object *v1alpha2.NginxOperator, failed *v1alpha2.FailedRevision, now time.Time) bool {
	if failed.AttemptTime != nil {
		return true
	}
	return failed.NextAttemptTime != nil && !now.Before(failed.NextAttemptTime.Time) &&
		!object.Spec.Paused && defaults.Replicas(&object.Spec) > 0
}

// RolledBackMessage returns the message about a revision that was rolled back.
func RolledBackMessage(failed *v1alpha2.FailedRevision) string {
	if failed.NextAttemptTime == nil {
		return failed.Message
	}
	return fmt.Sprintf("%s; attempt %d starts at %s", failed.Message, nextAttempt(failed), failed.NextAttemptTime.UTC().Format(time.RFC3339))
}

// AttemptMessage returns the message about a failed revision during its next attempt.
func AttemptMessage(failed *v1alpha2.FailedRevision) string {
	return fmt.Sprintf("%s; attempt %d is in progress", failed.Message, nextAttempt(failed))
}
