package rollout

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/defaults"
	"github.com/example/nginx-operator/internal/failure"
	"github.com/example/nginx-operator/internal/health"
	"github.com/example/nginx-operator/internal/live"
	"github.com/example/nginx-operator/internal/record"
	"github.com/example/nginx-operator/internal/requeue"
)

// A failed rollout is rolled back: its revision is written to status.failedRevisions, and the
// children are rendered from the last revision that has not failed. The status survives restarts of
// the operator.

// maxTried is the limit in bytes for an image in a message.
const maxTried = 256

// Evaluate returns the failed revision if the rollout of the applied Pod template has failed and
// there is a good revision to roll back to, or else nil. It also returns the delay of the next
// evaluation, or 0. A declaration with the Pod template of the last good revision has no rollout:
// its Pods may fail, but a rollback would not mend them.
func (r Decider) Evaluate(
	ctx context.Context, object *v1alpha2.NginxOperator, applied *record.Rendering,
) (*v1alpha2.FailedRevision, time.Duration, error) {
	good, deployment := object.Status.LastGoodRevision, r.Live.Deployment()
	if good == nil || applied == nil || object.Spec.Paused || !defaults.RolloutOf(&object.Spec).AutomaticRollback ||
		applied.Revision.Name == good.Revision || !health.RollsOut(deployment) {
		return nil, 0, nil
	}
	before := record.Failed(&object.Status, applied.Revision.Name)
	if before != nil && before.AttemptTime == nil { // the status does not have the attempt yet
		return nil, 0, nil
	}
	revisions, err := r.Records.List(object)
	if err != nil {
		return nil, 0, err
	}
	if recordOf(revisions, applied.Revision.Name) == nil || recordOf(revisions, good.Revision) == nil {
		return nil, 0, nil
	}
	known, err := r.restore(ctx, object, good.Revision)
	if err != nil || known != nil && record.SamePods(applied.Declaration, known) {
		return nil, 0, err
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
	message := fmt.Sprintf("rolled back %s: %s", tried(applied.Declaration, good), found.Message)
	return failedAgain(applied.Revision.Name, reason, message, found.Final, before, time.Now()), requeue.Soon, nil
}

// reasonToRollBack returns the reason for a failed rollout: ReferenceNotFound if the kubelet reports
// an object that is still missing.
func (r Decider) reasonToRollBack(ctx context.Context, object *v1alpha2.NginxOperator, found *failure.Failure) (string, error) {
	missing, ok := health.MissingReference(found.Message)
	if !ok {
		return found.Reason, nil
	}
	exists, err := r.Inputs.Exists(ctx, object, missing)
	if err != nil || exists {
		return found.Reason, err
	}
	return v1alpha2.ReasonReferenceNotFound, nil
}

// failureOf returns why a rollout has failed, or nil and the time until it may have failed. before is its
// earlier failure if it is an attempt, or nil.
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

// untilDeadline returns the time until the progress deadline of an attempt, or 0 without an attempt.
// Until then, the Deployment may report the deadline of the attempt before. The clock is the operator's,
// because that of the API server, which set the condition, may differ.
func untilDeadline(spec *v1alpha2.NginxOperatorSpec, before *v1alpha2.FailedRevision, now time.Time) time.Duration {
	if before == nil {
		return 0
	}
	deadline := time.Duration(defaults.RolloutOf(spec).ProgressDeadlineSeconds) * time.Second
	return max(before.AttemptTime.Add(deadline).Sub(now), 0)
}

// tried describes the changes of a declaration since the last good revision.
func tried(applied *record.Declaration, good *v1alpha2.GoodRevision) string {
	var news []string
	if image := applied.Inputs.Image; image != good.Image {
		news = append(news, fmt.Sprintf("image %q", image[:min(len(image), maxTried)]))
	}
	if applied.Inputs.Config.Hash != good.ConfigHash {
		news = append(news, "configuration")
	}
	return fmt.Sprintf("generation %d (%s)", applied.Object.Generation, cmp.Or(strings.Join(news, ", "), "Pod template"))
}
