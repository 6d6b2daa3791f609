package rollout

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/change"
	"github.com/example/nginx-operator/internal/defaults"
	"github.com/example/nginx-operator/internal/failure"
	"github.com/example/nginx-operator/internal/health"
	"github.com/example/nginx-operator/internal/live"
	"github.com/example/nginx-operator/internal/operand"
	"github.com/example/nginx-operator/internal/requeue"
	"github.com/example/nginx-operator/internal/revision"
	"github.com/example/nginx-operator/internal/wellknown"
)

// A failed rollout is rolled back: its revision is written to status.failedRevisions, and the Pods
// that were in effect before are written. The status survives restarts of the operator.

// maxTried is the limit in bytes for an image in a message.
const maxTried = 256

// Evaluate returns the failed revision if the rollout of the applied Pod template has failed and
// there are good Pods to roll back to, or else nil. It also returns the delay of the next
// evaluation, or 0. A declaration with the Pod template of the last good revision has no rollout:
// its Pods may fail, but a rollback would not mend them.
func (r Decider) Evaluate(
	ctx context.Context, object *v1alpha2.NginxOperator, applied *revision.Declaration,
) (*v1alpha2.FailedRevision, time.Duration, error) {
	good, deployment := object.Status.LastGoodRevision, r.Live.Deployment()
	if good == nil || applied == nil || object.Spec.Paused || !defaults.RolloutOf(&object.Spec).AutomaticRollback ||
		applied.Change.SamePods(change.ID(good.Change)) || !health.RollsOut(deployment) || !r.canRollBack(object) {
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
	found, left := failureOf(deployment, newest, &object.Spec, before)
	if found == nil {
		return nil, left, nil
	}
	reason, err := r.reasonToRollBack(ctx, object, found)
	if err != nil {
		return nil, 0, err
	}
	message := fmt.Sprintf("rolled back %s: %s", tried(object, applied, good), found.Message)
	failed := failedAgain(NameOf(object, applied.Change), reason, message, found.Final, before, time.Now())
	failed.Change, failed.SecretsHash = string(applied.Change), secretsHash(applied)
	return failed, requeue.Soon, nil
}

// secretsHash returns a hash of the Secrets that the Pods of a declaration mount, or "" if there
// are none.
func secretsHash(of *revision.Declaration) string {
	deployment := of.Deployment()
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

// reasonToRollBack returns the reason for a failed rollout: ReferenceNotFound if the kubelet
// reports an object that is still missing.
func (r Decider) reasonToRollBack(ctx context.Context, object *v1alpha2.NginxOperator, found *failure.Failure) (string, error) {
	missing, ok := health.MissingReference(found.Message)
	if !ok {
		return found.Reason, nil
	}
	exists, err := r.Resolver.Exists(ctx, object, missing)
	if err != nil || exists {
		return found.Reason, err
	}
	return v1alpha2.ReasonReferenceNotFound, nil
}

// failureOf returns why a rollout has failed, or nil and the time until it may have failed. before
// is its earlier failure if it is an attempt, or nil.
func failureOf(
	deployment *appsv1.Deployment, newest live.NewestReplicaSet, spec *v1alpha2.NginxOperatorSpec, before *v1alpha2.FailedRevision,
) (*failure.Failure, time.Duration) {
	found := health.RolloutFailure(deployment, newest.Pods, newest.Began)
	if found == nil || found.Certain {
		return found, 0
	}
	if left := untilDeadline(spec, before, time.Now()); left > 0 {
		return nil, left
	}
	return found, 0
}

// untilDeadline returns the time until the progress deadline of an attempt, or 0 without an
// attempt. Until then, the Deployment may report the deadline of the attempt before. The clock is
// the operator's, because that of the API server, which set the condition, may differ.
func untilDeadline(spec *v1alpha2.NginxOperatorSpec, before *v1alpha2.FailedRevision, now time.Time) time.Duration {
	if before == nil {
		return 0
	}
	deadline := time.Duration(defaults.RolloutOf(spec).ProgressDeadlineSeconds) * time.Second
	return max(before.AttemptTime.Add(deadline).Sub(now), 0)
}

// tried describes the changes of a declaration since the last good revision.
func tried(object *v1alpha2.NginxOperator, applied *revision.Declaration, good *v1alpha2.GoodRevision) string {
	var news []string
	if image := applied.Image(); image != good.Image {
		news = append(news, fmt.Sprintf("image %q", image[:min(len(image), maxTried)]))
	}
	if applied.ConfigHash() != good.ConfigHash {
		news = append(news, "configuration")
	}
	return fmt.Sprintf("generation %d (%s)", cmp.Or(applied.Generation, object.Generation), cmp.Or(strings.Join(news, ", "), "Pod template"))
}
