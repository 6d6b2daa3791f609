package rollout

import (
	"context"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/change"
	"github.com/example/nginx-operator/internal/health"
	"github.com/example/nginx-operator/internal/operand"
	"github.com/example/nginx-operator/internal/revision"
	"github.com/example/nginx-operator/internal/wellknown"
)

// NameOf returns the name of the revision with these Pods.
func NameOf(object *v1alpha2.NginxOperator, id change.ID) string {
	return object.Name + "-" + string(id)
}

// FailedOf returns the status of Pods that were rolled back, or nil if they were not.
func FailedOf(status *v1alpha2.NginxOperatorStatus, id change.ID) *v1alpha2.FailedRevision {
	for i := range status.FailedRevisions {
		if id.SamePods(change.ID(status.FailedRevisions[i].Change)) {
			return &status.FailedRevisions[i]
		}
	}
	return nil
}

// Recognize returns an object whose status has the IDs of its Pods. They are unknown at the first
// contact with an object of a release before 0.8.0, with one that has lost its status, and if the
// spec has changed before the status reported that its Pods are good. The change between the live
// Pods and those of the spec is the release's only if the status has this generation, and neither
// reports a rollback nor that the spec could not be used. Otherwise it is the user's. declared is
// the declaration of the spec, or nil.
func (r Decider) Recognize(
	ctx context.Context, object *v1alpha2.NginxOperator, declared *revision.Declaration,
) (*v1alpha2.NginxOperator, error) {
	deployment := r.Live.Deployment()
	switch {
	case deployment == nil:
		return object, nil
	case operand.IsMarkedAsBefore(deployment):
		return r.recognizeBefore(ctx, object, declared, deployment)
	}

	status, live := &object.Status, revision.ChangeOf(object, deployment)
	_, good := r.changes(object, declared)
	progress, last := health.ProgressOf(deployment), status.DeclaredRevision
	isOther := last != nil && !live.SamePods(change.ID(last.Change)) // another client may have brought it back
	if live == "" || live.SamePods(good) || declared != nil && declared.Change.SamePods(live) || isOther ||
		!progress.Complete || progress.Desired == 0 {
		return object, nil
	}

	out := object.DeepCopy()
	out.Status.LastGoodRevision = &v1alpha2.GoodRevision{Revision: NameOf(object, live), Change: string(live), Time: metav1.Now()}
	return out, nil
}

// recognizeBefore is Recognize for the first contact with an object of a release before 0.8.0.
func (r Decider) recognizeBefore(
	ctx context.Context, object *v1alpha2.NginxOperator, declared *revision.Declaration, deployment *appsv1.Deployment,
) (*v1alpha2.NginxOperator, error) {
	label := deployment.Labels[wellknown.LabelRecord]
	if of := object.Status.DeclaredRevision; of != nil && of.Revision == label || r.Store.Applier == nil {
		return object, nil
	}

	last, err := r.Store.Last(ctx, object, nil)
	if err != nil || last == nil {
		return object, err
	}

	out := object.DeepCopy()
	recognizeStatus(out, declared, label, last.Change.Pods())
	return out, nil
}

// recognizeStatus sets the IDs in the status of an object. label is the name that a release before
// 0.8.0 gave to what it declared last, and pods is the hash of its Pod template.
func recognizeStatus(object *v1alpha2.NginxOperator, declared *revision.Declaration, label, pods string) {
	status := &object.Status
	good, failed := status.LastGoodRevision, status.FailedRevisions
	isGood := good != nil && good.Revision == object.Name+"-"+label
	isObserved := declared != nil && status.ObservedGeneration == object.Generation && !object.Spec.Paused
	isOfSpec := isObserved && len(failed) == 0 && wasApplied(status)
	user := ""
	if isOfSpec || declared != nil && declared.Change.Pods() == pods {
		user = declared.Change.User()
	}

	id := string(change.NewID(user, pods))
	status.DeclaredRevision = &v1alpha2.DeclaredRevision{Revision: label, Change: id}
	switch {
	case isGood:
		good.Change = id
	case good != nil && isOfSpec: // it rolls out
		good.Change = string(change.NewID(user, ""))
	}

	if isObserved && isGood && len(failed) > 0 && failed[len(failed)-1].Change == "" {
		failed[len(failed)-1].Change = string(declared.Change)
	}
}

// wasApplied reports whether the spec was applied, according to the conditions: it is Ready, or its
// Pods are the reason why it is not.
func wasApplied(status *v1alpha2.NginxOperatorStatus) bool {
	progressing := meta.FindStatusCondition(status.Conditions, v1alpha2.ConditionProgressing)
	return meta.IsStatusConditionTrue(status.Conditions, v1alpha2.ConditionReady) ||
		progressing != nil && progressing.Status == metav1.ConditionTrue
}

// forgotten returns the failure of a change whose object has lost its status, or nil. The Pods of
// the spec were replaced if an older ReplicaSet has them, and the Deployment serves others.
func (r Decider) forgotten(object *v1alpha2.NginxOperator, declared *revision.Declaration) (*v1alpha2.FailedRevision, error) {
	deployment := r.Live.Deployment()
	if object.Status.ObservedGeneration != 0 || !health.ProgressOf(deployment).Complete ||
		declared.Change.SamePods(revision.ChangeOf(object, deployment)) {
		return nil, nil
	}

	replicaSets, err := r.Live.ReplicaSets()
	if err != nil || !slices.ContainsFunc(replicaSets, func(one *appsv1.ReplicaSet) bool {
		return metav1.IsControlledBy(one, deployment) && declared.Change.SamePods(change.ID(one.Annotations[wellknown.AnnotationChange]))
	}) {
		return nil, err
	}

	return &v1alpha2.FailedRevision{
		Revision: NameOf(object, declared.Change), Change: string(declared.Change), Reason: v1alpha2.ReasonRolledBack,
		Message: fmt.Sprintf("rolled back generation %d; the reason is unknown, because the status was lost", declared.Generation),
		Time:    metav1.NewTime(time.Now()),
	}, nil
}
