package rollout

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/change"
	"github.com/example/nginx-operator/internal/defaults"
	"github.com/example/nginx-operator/internal/failure"
	"github.com/example/nginx-operator/internal/health"
	"github.com/example/nginx-operator/internal/operand"
	"github.com/example/nginx-operator/internal/requeue"
	"github.com/example/nginx-operator/internal/revision"
	"github.com/example/nginx-operator/internal/wellknown"
)

// Evaluate returns the failed revision if the rollout of the applied Pod template has failed and
// there are good Pods to roll back to, or else nil. It also returns the delay of the next
// evaluation, or 0. A declaration with the Pod template of the last good revision has no rollout:
// its Pods may fail, but a rollback would not mend them.
func (r Decider) Evaluate(
	ctx context.Context, object *v1alpha2.NginxOperator, applied *revision.Declaration,
) (*v1alpha2.FailedRevision, time.Duration, error) {
	good, deployment, rollout := object.Status.LastGoodRevision, r.Live.Deployment(), defaults.RolloutOf(&object.Spec)
	if good == nil || applied == nil || object.Spec.Paused || !rollout.AutomaticRollback ||
		applied.Change.SamePods(change.ID(good.Change)) || !health.ProgressOf(deployment).Rolling || !r.canRollBack(object) {
		return nil, 0, nil
	}

	before := FailedOf(&object.Status, applied.Change)
	if before != nil && before.AttemptTime == nil { // the status does not have the attempt yet
		return nil, requeue.UntilObserved, nil
	}

	newest, err := r.Live.NewestPods()
	if err != nil {
		return nil, 0, err
	}
	if !newest.Known {
		return nil, requeue.UntilObserved, nil
	}

	cause := health.RolloutFailure(deployment, newest.Pods, newest.Began)
	if cause == nil {
		return nil, 0, nil
	}

	if before != nil && !cause.Certain {
		// The Deployment may report the deadline of the attempt before. The clock is the operator's,
		// because that of the API server, which set the condition, may differ.
		deadline := before.AttemptTime.Add(time.Duration(rollout.ProgressDeadlineSeconds) * time.Second)
		if left := time.Until(deadline); left > 0 {
			return nil, left, nil
		}
	}

	reason, err := r.reasonToRollBack(ctx, object, cause)
	if err != nil {
		return nil, 0, err
	}

	message := fmt.Sprintf("rolled back generation %d (%s): %s", cmp.Or(applied.Generation, object.Generation),
		differences(applied, good.Image, applied.Exporter(), applied.RequestMetrics(), good.ConfigHash), cause.Message)
	failed := failedAgain(NameOf(object, applied.Change), reason, message, cause.Final, before, time.Now())
	failed.Change, failed.SecretsHash = string(applied.Change), secretsHash(applied)
	return failed, requeue.Soon, nil
}

// secretsHash returns a hash of the mounted Secrets, or "" if there are none.
func secretsHash(declared *revision.Declaration) string {
	deployment := declared.Deployment()
	if deployment == nil {
		return ""
	}

	annotations := deployment.Spec.Template.Annotations
	text := annotations[wellknown.AnnotationCertificates] + annotations[wellknown.AnnotationFiles]
	if text == "" {
		return ""
	}
	return operand.ShortHash(text)
}

// reasonToRollBack is ReferenceNotFound if the kubelet's missing object is still missing.
func (r Decider) reasonToRollBack(ctx context.Context, object *v1alpha2.NginxOperator, cause *failure.Failure) (string, error) {
	missing, ok := health.MissingReference(cause.Message)
	if !ok {
		return cause.Reason, nil
	}

	exists, err := r.Resolver.Exists(ctx, object, missing)
	if err != nil || exists {
		return cause.Reason, err
	}
	return v1alpha2.ReasonReferenceNotFound, nil
}

const maxTried = 256

// differences describes the changes since earlier images and a configuration.
func differences(declared *revision.Declaration, image, exporter, requestMetrics, configHash string) string {
	var news []string
	if next := declared.Image(); next != image {
		news = append(news, fmt.Sprintf("image %q", next[:min(len(next), maxTried)]))
	}
	if next := declared.Exporter(); next != exporter {
		news = append(news, fmt.Sprintf("exporter image %q", next[:min(len(next), maxTried)]))
	}
	if next := declared.RequestMetrics(); next != requestMetrics {
		news = append(news, fmt.Sprintf("request metrics image %q", next[:min(len(next), maxTried)]))
	}
	if declared.ConfigHash() != configHash {
		news = append(news, "configuration")
	}
	return cmp.Or(strings.Join(news, ", "), "Pod template")
}

// The cause of a failed rollout may pass, for example a quota. So a failed revision is attempted
// again, unless nginx refuses its text.

const (
	// firstDelay is the delay of the second attempt. It doubles each time, up to maxDelay.
	firstDelay = 2 * time.Minute
	maxDelay   = time.Hour
	// maxAttempts is the schema's limit of attempts in status.failedRevisions.
	maxAttempts = 1_000_000
)

// failedAgain returns the status after a failure. before is that of an earlier attempt, or nil.
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

// nextAttempt counts from 2. Releases before 0.8.0 did not count their one attempt.
func nextAttempt(failed *v1alpha2.FailedRevision) int32 { return max(failed.Attempts, 1) + 1 }

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
