package rollout

import (
	"testing"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/change"
	"github.com/example/nginx-operator/internal/failure"
	"github.com/example/nginx-operator/internal/fixture"
	"github.com/example/nginx-operator/internal/fleet"
	"github.com/example/nginx-operator/internal/health"
	"github.com/example/nginx-operator/internal/wellknown"
)

// TestFailedBefore verifies that a change that failed under an earlier release is recognized,
// unless the user has changed it since.
func TestFailedBefore(t *testing.T) {
	for name, test := range map[string]struct {
		failed, id change.ID
		want       bool
	}{
		"another image of the release": {"user-1", "user-2", true},
		"the same release":             {"user-1", "user-1", false},
		"a change of the user":         {"user-1", "other-2", false},
		"an unknown user's part":       {"-1", "-2", false},
	} {
		status := &v1alpha2.NginxOperatorStatus{FailedRevisions: []v1alpha2.FailedRevision{{Change: string(test.failed)}}}
		if got := failedBefore(status, test.id); (got != nil) != test.want {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if got := failedBefore(&v1alpha2.NginxOperatorStatus{}, "user-1"); got != nil {
		t.Errorf("nothing has failed: %+v", got)
	}
}

func TestGroupOf(t *testing.T) {
	canary := fixture.NewObject()
	canary.Labels = map[string]string{wellknown.LabelCanary: "true"}
	for name, test := range map[string]struct {
		object   *v1alpha2.NginxOperator
		complete bool
		want     fleet.Place
	}{
		"serves":                {fixture.NewObject(), true, fleet.Waiting},
		"canary":                {canary, true, fleet.WaitingCanary},
		"does not serve":        {fixture.NewObject(), false, fleet.WaitingUnready},
		"canary does not serve": {canary, false, fleet.WaitingUnready},
	} {
		if got := groupOf(test.object, health.Progress{Complete: test.complete}); got != test.want {
			t.Errorf("%s: %d, want %d", name, got, test.want)
		}
	}
}

// TestPlaceOfFailure verifies that only failures caused by the release stop its rollout.
func TestPlaceOfFailure(t *testing.T) {
	for reason, want := range map[string]fleet.Place{
		v1alpha2.ReasonImagePullFailed: fleet.Failed, v1alpha2.ReasonCrashLoop: fleet.Failed, v1alpha2.ReasonInvalidConfiguration: fleet.Failed,
		v1alpha2.ReasonProgressDeadlineExceeded: fleet.Failed, v1alpha2.ReasonInvalidChild: fleet.Failed,
		v1alpha2.ReasonQuotaExceeded: fleet.Outside, v1alpha2.ReasonForbidden: fleet.Outside,
		v1alpha2.ReasonUnschedulable: fleet.Rolling, v1alpha2.ReasonAPIError: fleet.Rolling,
	} {
		if got := PlaceOfFailure(&failure.Failure{Reason: reason}); got != want {
			t.Errorf("%s: %d, want %d", reason, got, want)
		}
		if got := placeOfRolledBack(reason); got == fleet.Rolling {
			t.Errorf("%s: a rollout that was rolled back keeps its slot", reason)
		}
	}
	// The release does not cause the failure of an admission webhook for Pods.
	if got := placeOfRolledBack(v1alpha2.ReasonAPIError); got != fleet.Outside {
		t.Errorf("a rollout that requests failed for until its deadline: %d, want %d", got, fleet.Outside)
	}
}
