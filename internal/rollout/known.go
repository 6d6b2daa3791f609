package rollout

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/change"
	"github.com/example/nginx-operator/internal/failure"
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

	live, progress := revision.ChangeOf(object, deployment), health.ProgressOf(deployment)
	last, good := r.changes(object, declared)
	isOfSpec := declared != nil && declared.Change.SamePods(live)
	if live == "" || isOfSpec || !live.SamePods(last) || live.SamePods(good) || !progress.Complete || progress.Desired == 0 {
		return object, nil
	}

	out := object.DeepCopy()
	out.Status.LastGoodRevision = &v1alpha2.GoodRevision{Revision: NameOf(object, live), Change: string(live), Time: metav1.Now()}
	return out, nil
}

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

// wasApplied reports whether the object is Ready, or only its Pods are the reason why not.
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

// Resolution is the result of resolving a spec and its references.
type Resolution struct {
	// Invalid are the reasons why the spec cannot be applied.
	Invalid []failure.Failure
	// Outdated are stored values of the spec that this release refuses in a new write, and Accepted
	// has the hashes of these values.
	Outdated field.ErrorList
	Accepted []string
	// Certificates are the referenced certificates that nginx can use.
	Certificates []operand.Certificate
	// CertificatesHash is the hash of these certificates, with which Pods mount them, or "".
	CertificatesHash string
	// Resolved reports whether all references could be read.
	Resolved bool
}

// Declare returns the declaration of the object, or nil if its spec cannot be used, and the
// resolution of its spec. It returns an error if an object cannot be read.
func (r Decider) Declare(ctx context.Context, object *v1alpha2.NginxOperator) (*revision.Declaration, Resolution, error) {
	found := r.ratchet(object)
	in, invalid, err := r.Resolver.Resolve(ctx, object, found.Invalid)
	found.Invalid, found.Resolved = invalid, err == nil
	found.Certificates, found.CertificatesHash = in.Certificates, in.CertificatesHash
	if err != nil || len(invalid) > 0 {
		found.Accepted = object.Status.AcceptedValues // the values are in effect still
		return nil, found, err
	}

	out, err := r.render(object, in, "")
	if refused := (operand.NotPatched{}); errors.As(err, &refused) {
		found.Invalid = []failure.Failure{{Reason: v1alpha2.ReasonInvalidConfiguration, Message: refused.Error()}}
		return nil, found, nil
	}

	return out, found, err
}

// RenderAgain returns a marked declaration of a spec for another live state, or with another suffix
// in the names of its ConfigMaps. For "", they end with the suffix of the live Deployment.
func (r Decider) RenderAgain(object *v1alpha2.NginxOperator, before *revision.Declaration, suffix string) (*revision.Declaration, error) {
	out, err := r.render(object, before.Inputs, suffix)
	if err != nil {
		return nil, err
	}
	return out, r.Mark(object, out)
}

// render returns the declaration of a spec with these inputs. The suffix is that of RenderAgain.
func (r Decider) render(object *v1alpha2.NginxOperator, in operand.Inputs, suffix string) (*revision.Declaration, error) {
	running, err := r.Live.Running()
	if err != nil {
		return nil, err
	}

	in.Missing, in.Running, in.Deployment = r.Missing, running, r.Live.Deployment()
	in.Suffix = cmp.Or(suffix, operand.SuffixOf(in.Deployment))
	out := &revision.Declaration{
		Generation: object.Generation, Object: object, Inputs: in,
		Content: revision.NewContent(object, in, r.Resolver.ReadFiles(object, in)),
	}

	if out.Children, err = operand.Children(object, in); err != nil {
		return nil, err
	}

	out.Change, err = change.Of(object, in, &out.Deployment().Spec.Template)
	return out, err
}

// Mark writes the ID of its Pods to a rendered declaration. An upgrade alone changes no child, so
// the Deployment of a release before 0.8.0 keeps its names until its Pods change.
func (r Decider) Mark(object *v1alpha2.NginxOperator, declared *revision.Declaration) error {
	deployment, live := declared.Deployment(), r.Live.Deployment()
	if operand.IsMarkedAsBefore(live) && revision.ChangeOf(object, live).SamePods(declared.Change) {
		operand.MarkAsBefore(deployment, live)
		return nil
	}

	spec, err := json.Marshal(change.UserPart(&object.Spec))
	if err != nil {
		return fmt.Errorf("failed to encode spec: %w", err)
	}

	operand.Mark(deployment, string(declared.Change), string(spec), live)
	return nil
}

// ratchet finds the refused values of a spec. Values that were in effect before this release
// refused them stay in effect, and the status reports them. The others are blockers: they were
// written while admission was unavailable.
func (r Decider) ratchet(object *v1alpha2.NginxOperator) Resolution {
	var out Resolution
	before := object.Status.AcceptedValues
	isFirst := len(before) == 0 && r.Live.Deployment() != nil && object.Status.ObservedGeneration == object.Generation &&
		wasApplied(&object.Status)
	for _, refusal := range r.Resolver.Refusals(object) {
		switch hash := operand.ShortHash(refusal.Key()); {
		case isFirst || slices.Contains(before, hash):
			out.Outdated = append(out.Outdated, refusal.Err)
			out.Accepted = append(out.Accepted, hash)
		default:
			out.Invalid = append(out.Invalid, failure.Failure{
				Reason: v1alpha2.ReasonInvalidConfiguration, Message: refusal.Err.Error(),
			})
		}
	}

	slices.Sort(out.Accepted)
	out.Accepted = slices.Compact(out.Accepted)
	return out
}
