package nginxoperator

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/defaults"
	"github.com/example/nginx-operator/internal/fleet"
	"github.com/example/nginx-operator/internal/operatormanager"
)

// A rollout that fails is taken back: its revision is written into status.failedRevisions, and from then on the children are made of
// the last revision that has not failed. The status is what remembers it, over restarts of the operator as well; who deletes it has the
// change tried once more.

const (
	// maxTried bounds what a message says of the image that was tried.
	maxTried = 256
	// maxFailed is how many failed revisions the schema allows.
	maxFailed = 4
)

// failedRevision returns what the status says of a revision that was taken back, nil where it was not.
func failedRevision(status *v1alpha2.NginxOperatorStatus, revision string) *v1alpha2.FailedRevision {
	for i := range status.FailedRevisions {
		if status.FailedRevisions[i].Revision == revision {
			return &status.FailedRevisions[i]
		}
	}
	return nil
}

// hasFailed reports whether a revision was taken back.
func hasFailed(status *v1alpha2.NginxOperatorStatus, revision string) bool {
	return failedRevision(status, revision) != nil
}

// declared returns what the object declares, or what blocks it, and the certificates that it can use.
func (r *Reconciler) declared(ctx context.Context, object *v1alpha2.NginxOperator) (*declaration, outcome, error) {
	in, blockers, err := r.resolve(ctx, object)
	if err == nil && len(blockers) == 0 {
		blockers = patchBlockers(object, in)
	}
	result := outcome{blockers: blockers, certificates: in.usable, resolved: err == nil}
	if err != nil || len(blockers) > 0 {
		return nil, result, err
	}
	out, err := newDeclaration(object, in, r.readFiles(object, in))
	return out, result, err
}

// unlessFailed has the declaration applied, or what runs in its place because its rollout was taken back.
func (r *Reconciler) unlessFailed(ctx context.Context, declared *declaration, result *outcome) error {
	object := declared.object
	result.applied, result.candidates = declared, []string{declared.revision.Name}
	failed := failedRevision(&object.Status, declared.revision.Name)
	if failed == nil || !defaults.RolloutOf(&object.Spec).AutomaticRollback {
		if result.fleet == nil || *result.fleet == fleet.Outside {
			r.revisions.Delete(client.ObjectKeyFromObject(object))
		}
		return nil
	}
	last, err := r.lastApplied(ctx, object)
	if err != nil || last == nil {
		return err
	}
	result.blockers = []failure{{v1alpha2.ReasonRolledBack, failed.Message}}
	_, err = r.applyInstead(ctx, last, result)
	return err
}

// applyInstead has an earlier declaration applied with what its Secrets hold now, unless that has failed: then it is
// applied as it was, and the failure is returned.
func (r *Reconciler) applyInstead(ctx context.Context, last *declaration, result *outcome) (*v1alpha2.FailedRevision, error) {
	renewed, err := r.withSecrets(ctx, last)
	if err != nil {
		return nil, err
	}
	result.applied = renewed
	result.candidates = append(result.candidates, renewed.revision.Name)
	failed := failedRevision(&last.object.Status, renewed.revision.Name)
	if failed != nil {
		result.applied = last
	}
	return failed, nil
}

// withSecrets returns an earlier declaration with what its Secrets hold now: what was taken back for another reason still gets a renewed
// certificate. Where they cannot be used, it is returned as it is.
func (r *Reconciler) withSecrets(ctx context.Context, of *declaration) (*declaration, error) {
	in := of.in
	blockers, err := r.resolveCertificates(ctx, of.object, &in)
	if err != nil {
		return nil, err
	}
	absent, err := r.resolveSecretFiles(ctx, of.object, &in)
	if err != nil {
		return nil, err
	}
	if len(blockers)+len(absent) > 0 || in.certificates == of.in.certificates && in.secrets == of.in.secrets {
		return of, nil
	}
	return newDeclaration(of.object, in, of.files)
}

// judge looks whether the rollout of what is applied has failed, and there is something to go back to.
func (r *Reconciler) judge(ctx context.Context, object *v1alpha2.NginxOperator, state observed, result *outcome) error {
	good, applied := object.Status.LastGoodRevision, result.applied
	if good == nil || applied == nil || object.Spec.Paused || !defaults.RolloutOf(&object.Spec).AutomaticRollback ||
		applied.revision.Name == good.Revision || hasFailed(&object.Status, applied.revision.Name) || !rollsOut(state.deployment) {
		return nil
	}
	revisions, err := r.keptRevisions(ctx, object)
	if err != nil {
		return err
	}
	has := func(name string) int {
		return slices.IndexFunc(revisions, func(one appsv1.ControllerRevision) bool { return one.Name == name })
	}
	at := has(applied.revision.Name)
	if at < 0 || has(good.Revision) < 0 {
		return nil
	}
	newest, known, err := r.newestPods(ctx, object, state)
	if err != nil {
		return err
	}
	if !known {
		result.again = sooner(result.again, observeRetry)
		return nil
	}
	found := rolloutFailure(state.deployment, newest, revisions[at].CreationTimestamp.Time)
	if found == nil {
		return nil
	}
	message := fmt.Sprintf("the rollout of %s failed and was taken back: %s", tried(applied, good), found.message)
	result.failed = &v1alpha2.FailedRevision{
		Revision: applied.revision.Name, Reason: found.reason, Message: truncate(message), Time: metav1.Now(),
	}
	result.blockers = append(slices.Clip(result.blockers), failure{v1alpha2.ReasonRolledBack, message})
	result.again = soon
	return nil
}

// rollsOut reports whether a Deployment has begun the rollout of what it says now, and not completed it.
func rollsOut(deployment *appsv1.Deployment) bool {
	return deployment != nil && deployment.Status.ObservedGeneration >= deployment.Generation && !rolloutOf(deployment).complete
}

// newestPods returns the Pods of the newest revision of the Deployment, and whether the cache has that already.
func (r *Reconciler) newestPods(
	ctx context.Context, object *v1alpha2.NginxOperator, state observed,
) (newest []*corev1.Pod, known bool, err error) {
	list := &appsv1.ReplicaSetList{}
	if err := r.Client.List(ctx, list, ofInstance(object)...); err != nil {
		return nil, false, fmt.Errorf("failed to list ReplicaSets: %w", err)
	}
	number := state.deployment.Annotations[operatormanager.AnnotationRevision]
	at := slices.IndexFunc(list.Items, func(one appsv1.ReplicaSet) bool {
		return metav1.IsControlledBy(&one, state.deployment) && one.Annotations[operatormanager.AnnotationRevision] == number
	})
	if at < 0 {
		return nil, false, nil
	}
	for _, pod := range state.pods {
		if metav1.IsControlledBy(pod, &list.Items[at]) {
			newest = append(newest, pod)
		}
	}
	return newest, true, nil
}

// rolloutFailure tells why a rollout that began at a time does not succeed, nil where it may still. What is certain is told at once, all
// else when the deadline has passed.
func rolloutFailure(deployment *appsv1.Deployment, newest []*corev1.Pod, began time.Time) *failure {
	for _, pod := range newest {
		if found := podFailure(pod); found != nil && isCertain(found) {
			return found
		}
	}
	progressing := deploymentCondition(deployment, appsv1.DeploymentProgressing)
	if progressing == nil || progressing.Status != corev1.ConditionFalse || progressing.LastUpdateTime.Time.Before(began) {
		return nil
	}
	return operandFailure(observed{deployment: deployment, pods: newest})
}

// isCertain reports whether waiting will not mend a failure.
func isCertain(found *failure) bool {
	switch found.reason {
	case v1alpha2.ReasonInvalidConfiguration, v1alpha2.ReasonCrashLoop, v1alpha2.ReasonContainerConfigError:
		return true
	case v1alpha2.ReasonImagePullFailed:
		// The words of registries and of container runtimes; a registry that does not answer may be back in a moment.
		return slices.ContainsFunc([]string{"not found", "not exist", "manifest unknown", "InvalidImageName", "invalid reference"},
			func(words string) bool { return strings.Contains(found.message, words) })
	}
	return false
}

// tried says what is new in a declaration.
func tried(applied *declaration, good *v1alpha2.GoodRevision) string {
	var news []string
	if image := applied.in.image; image != good.Image {
		news = append(news, fmt.Sprintf("image %q", image[:min(len(image), maxTried)]))
	}
	if applied.in.config.hash != good.ConfigHash {
		news = append(news, "another configuration")
	}
	return fmt.Sprintf("generation %d (%s)", applied.object.Generation, cmp.Or(strings.Join(news, ", "), "other Pods"))
}

// lastGood returns what served with all replicas last.
func lastGood(object *v1alpha2.NginxOperator, state observed, result outcome) *v1alpha2.GoodRevision {
	before, applied := object.Status.LastGoodRevision, result.applied
	if applied == nil || result.failure != nil || object.Spec.Paused || state.deployment == nil {
		return before
	}
	if progress := rolloutOf(state.deployment); !progress.complete || progress.desired == 0 {
		return before
	}
	if before != nil && before.Revision == applied.revision.Name {
		return before
	}
	return &v1alpha2.GoodRevision{
		Revision: applied.revision.Name, Image: applied.in.image, ConfigHash: applied.in.config.hash, Time: metav1.Now(),
	}
}

// isNewGood reports whether what serves is another revision now. The first one matters where the object waits for its turn.
func isNewGood(before, now *v1alpha2.GoodRevision, result outcome) bool {
	if before == nil || now == nil {
		return now != nil && result.waitsFor != ""
	}
	return before.Revision != now.Revision
}

// failedRevisions returns what is not to be tried again: what was taken back, as long as the object asks for it.
func failedRevisions(object *v1alpha2.NginxOperator, result outcome) []v1alpha2.FailedRevision {
	out := slices.Clone(object.Status.FailedRevisions)
	if result.candidates != nil && !object.Spec.Paused {
		out = slices.DeleteFunc(out, func(failed v1alpha2.FailedRevision) bool {
			return !slices.Contains(result.candidates, failed.Revision) || result.applied != nil && failed.Revision == result.applied.revision.Name
		})
	}
	if result.failed != nil {
		out = append(out, *result.failed)
	}
	return out[max(0, len(out)-maxFailed):]
}
