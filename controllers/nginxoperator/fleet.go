package nginxoperator

import (
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/defaults"
	"github.com/example/nginx-operator/internal/fleet"
	"github.com/example/nginx-operator/internal/nginxconf"
	"github.com/example/nginx-operator/internal/wellknown"
)

// A release of the operator may make something else of what an object declares: of another default image, nginx.conf or Pod template.
// Such a change waits for its turn. Until then the children are made of what was applied last, as those of a blocked object are.

// inTurn has the declaration applied, or what runs in its place because it waits for its turn or was taken back.
func (r *Reconciler) inTurn(ctx context.Context, declared *declaration, result *outcome) error {
	waits, err := r.unlessWaiting(ctx, declared, result)
	if err != nil || waits {
		return err
	}
	return r.unlessFailed(ctx, declared, result)
}

// unlessWaiting has what was applied last applied, and reports true, where the release makes something else of what the object
// declares and it is not the object's turn. It says where the object is in the rollout of the release.
func (r *Reconciler) unlessWaiting(ctx context.Context, declared *declaration, result *outcome) (bool, error) {
	object, name := declared.object, declared.revision.Name
	good := object.Status.LastGoodRevision
	if object.Spec.Paused || good != nil && good.Revision == name {
		result.fleet = ptr.To(fleet.Outside)
		return false, nil
	}
	// A moment old will do: what began a moment ago the Gate knows.
	revisions, err := r.listRevisions(ctx, object, ofInstance(object)...)
	if err != nil {
		return false, err
	}
	before, begun := predecessor(object, revisions, name)
	last, err := r.ofOtherRelease(ctx, declared, before)
	if err != nil {
		return false, err
	}
	deployment, err := r.liveDeployment(ctx, object)
	if err != nil {
		return false, err
	}
	switch {
	case last == nil, replicasOf(object, deployment).number == 0: // without Pods there are none that could roll
		result.fleet = ptr.To(fleet.Outside)
		return false, nil
	case begun:
		result.fleet = ptr.To(fleet.Rolling)
		if failed := failedRevision(&object.Status, name); failed != nil {
			result.fleet = ptr.To(placeOfFailure(failed.Reason))
		}
		return false, nil
	}
	progress := rolloutOf(deployment)
	group := groupOf(object, progress)
	// What serves is written down first: without that nothing could be taken back.
	proven := !progress.complete || good != nil && good.Revision == before.Name
	if proven && r.Fleet.Ask(client.ObjectKeyFromObject(object), group) {
		result.fleet = ptr.To(fleet.Rolling)
		return false, nil
	}
	result.fleet, result.waitsFor = &group, differences(declared, last)
	result.candidates = []string{name}
	failed, err := r.applyInstead(ctx, last, result)
	if failed != nil {
		result.blockers = []failure{{v1alpha2.ReasonRolledBack, failed.Message}}
	}
	return true, err
}

// predecessor returns the record of what ran before a revision, nil where that is not kept, and whether the revision has begun: then it
// is that of the last good revision, else the newest one.
func predecessor(
	object *v1alpha2.NginxOperator, revisions []appsv1.ControllerRevision, name string,
) (before *appsv1.ControllerRevision, begun bool) {
	is := func(name string) func(appsv1.ControllerRevision) bool {
		return func(one appsv1.ControllerRevision) bool { return one.Name == name }
	}
	begun = hasFailed(&object.Status, name) || slices.ContainsFunc(revisions, is(name))
	at := -1
	if good := object.Status.LastGoodRevision; begun && good != nil {
		at = slices.IndexFunc(revisions, is(good.Revision))
	} else if !begun {
		at = slices.IndexFunc(revisions, func(one appsv1.ControllerRevision) bool { return !hasFailed(&object.Status, one.Name) })
	}
	if at < 0 {
		return nil, begun
	}
	return &revisions[at], begun
}

// groupOf returns the group in which an object waits.
func groupOf(object *v1alpha2.NginxOperator, progress rollout) fleet.Place {
	switch {
	case !progress.complete:
		return fleet.WaitingUnready
	case wellknown.IsCanary(object.Labels):
		return fleet.WaitingCanary
	}
	return fleet.Waiting
}

// ofOtherRelease returns the declaration that a record keeps if the user's part of it is that of the object and another release's
// part is not; else nil.
func (r *Reconciler) ofOtherRelease(ctx context.Context, declared *declaration, before *appsv1.ControllerRevision) (*declaration, error) {
	if before == nil {
		return nil, nil
	}
	last, err := r.restored(ctx, declared.object, before)
	if isBadRevision(err) { // a release may refuse what an earlier one took, and the object's way out is a change
		return nil, nil
	}
	if err != nil || !sameDeclaration(declared, last) || differences(declared, last) == "" {
		return nil, err
	}
	same, err := sameServers(ctx, declared, last)
	if err != nil || !same {
		return nil, err
	}
	return last, nil
}

// sameDeclaration reports whether two declarations have the same spec, content and files. Replicas do not count, and certificates are
// renewed at any time. A spec of the same generation is the same, though the schema of a release may read another default into it.
func sameDeclaration(declared, last *declaration) bool {
	if hashOf(declared.in.content) != hashOf(last.in.content) || hashOf(declared.in.files) != hashOf(last.in.files) {
		return false
	}
	if declared.object.Generation == last.object.Generation {
		return true
	}
	now, before := declared.object.Spec, last.object.Spec
	now.Replicas, before.Replicas = nil, nil
	return defaults.SameSpec(&now, &before)
}

func hashOf(content *content) string {
	if content == nil {
		return ""
	}
	return content.hash
}

// sameServers reports whether the user's part of two configurations is the same. What is inline is part of the spec.
func sameServers(ctx context.Context, declared, last *declaration) (bool, error) {
	config := declared.object.Spec.Config
	if declared.in.config.hash == last.in.config.hash || config == nil || config.ConfigMapRef == nil {
		return true, nil
	}
	before, err := last.files(ctx)
	if isBadRevision(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	now, err := declared.files(ctx)
	return now.Config[nginxconf.ServersFile] == before.Config[nginxconf.ServersFile], err
}

// differences says what a release makes of a declaration, "" where that is the same.
func differences(declared, last *declaration) string {
	var news []string
	if image := declared.in.image; image != last.in.image {
		news = append(news, fmt.Sprintf("image %q", image[:min(len(image), maxTried)]))
	}
	if image := declared.in.exporter; image != last.in.exporter {
		news = append(news, fmt.Sprintf("image of the exporter %q", image[:min(len(image), maxTried)]))
	}
	if declared.in.config.hash != last.in.config.hash {
		news = append(news, "another configuration")
	}
	if declared.in.edition != last.in.edition {
		news = append(news, "other Pods")
	}
	return strings.Join(news, ", ")
}

// waitingMessage says what an object waits for.
func waitingMessage(what string) string {
	return fmt.Sprintf("waits for its turn to get what this release of the operator makes of it (%s); what runs serves what is declared", what)
}

// judgeForFleet says where an object is that has begun. Only the Pods of the newest revision count.
func (r *Reconciler) judgeForFleet(
	ctx context.Context, object *v1alpha2.NginxOperator, state observed, status *v1alpha2.NginxOperatorStatus, result *outcome,
) error {
	if result.fleet == nil || *result.fleet != fleet.Rolling {
		return nil
	}
	if good := status.LastGoodRevision; good != nil && good.Revision == result.candidates[0] {
		*result.fleet = fleet.Outside
		return nil
	}
	failing := result.failure
	if result.failed != nil {
		failing = &failure{reason: result.failed.Reason}
	} else if failing == nil && rollsOut(state.deployment) {
		newest, known, err := r.newestPods(ctx, object, state)
		if err != nil || !known {
			return err
		}
		failing = operandFailure(observed{deployment: state.deployment, pods: newest})
	}
	if failing != nil {
		*result.fleet = placeOfFailure(failing.reason)
	}
	return nil
}

// placeOfFailure tells what a failure says of the release: nothing where its cause is what the namespace allows, and nothing yet where
// it may pass.
func placeOfFailure(reason string) fleet.Place {
	switch reason {
	case v1alpha2.ReasonQuotaExceeded, v1alpha2.ReasonForbidden, v1alpha2.ReasonNameConflict, v1alpha2.ReasonNamespaceTerminating:
		return fleet.Outside
	case v1alpha2.ReasonUnschedulable, v1alpha2.ReasonAPIError, v1alpha2.ReasonRolloutInProgress:
		return fleet.Rolling
	}
	return fleet.Failed
}

// reportToFleet tells the Gate what a reconcile came to.
func (r *Reconciler) reportToFleet(object *v1alpha2.NginxOperator, place *fleet.Place) {
	key := client.ObjectKeyFromObject(object)
	switch {
	case place == nil:
		r.Fleet.Seen(key)
	case *place == fleet.Outside && defaults.Replicas(&object.Spec) == 0:
		r.Fleet.Forget(key) // or whoever makes many objects without Pods would have more of those with Pods roll
	default:
		r.Fleet.Report(key, *place, wellknown.IsCanary(object.Labels))
	}
}
