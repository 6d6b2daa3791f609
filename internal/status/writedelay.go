package status

import (
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/example/nginx-operator/api/v1alpha2"
)

// statusSlot is the interval of status writes that only change counts during a rollout.
const statusSlot = 5 * time.Second

// WriteDelay returns the delay of a status write. It is 0 if anything but counts changed. If only
// counts changed during a rollout or while changes are blocked, it is the time until the end of the
// current slot, so a rollout of many Pods costs only a few writes. It is negative if there is
// nothing to write: nothing changed, or only counts while no Pod is ready. The next write includes
// such counts.
func WriteDelay(old, updated *v1alpha2.NginxOperatorStatus, now time.Time) time.Duration {
	if equality.Semantic.DeepEqual(old, updated) {
		return -1
	}
	progressing := meta.FindStatusCondition(updated.Conditions, v1alpha2.ConditionProgressing)
	rolling := progressing != nil && progressing.Status == metav1.ConditionTrue
	held := !rolling && len(updated.BlockedBy) > 0
	if progressing == nil || !rolling && !held ||
		!equality.Semantic.DeepEqual(withoutCounts(old), withoutCounts(updated)) {
		return 0
	}
	if old.ReadyReplicas == 0 && updated.ReadyReplicas == 0 && !held {
		return -1
	}
	elapsed := now.Sub(progressing.LastTransitionTime.Time)
	if elapsed < 0 { // the clock of the process that wrote the status was ahead
		return 0
	}
	if sinceSlot := elapsed % statusSlot; elapsed < statusSlot || sinceSlot > time.Second {
		return statusSlot - sinceSlot
	}
	return 0
}

// withoutCounts returns a status without the parts that change with each Pod: the counts, the
// messages, and the difference between a running rollout and one that waits for its last Pods.
func withoutCounts(status *v1alpha2.NginxOperatorStatus) *v1alpha2.NginxOperatorStatus {
	out := status.DeepCopy()
	out.Replicas, out.ReadyReplicas, out.UpdatedReplicas = 0, 0, 0
	for i := range out.Conditions {
		out.Conditions[i].Message = ""
		if out.Conditions[i].Reason == v1alpha2.ReasonReplicasUnavailable {
			out.Conditions[i].Reason = v1alpha2.ReasonRolloutInProgress
		}
	}
	return out
}
