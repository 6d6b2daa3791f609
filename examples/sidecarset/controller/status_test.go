package controller

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/example/nginx-operator/examples/sidecarset/api/v1alpha1"
	"github.com/example/nginx-operator/examples/test/sample"
)

// sampleSet returns the SidecarSet of the document, as it is stored.
func sampleSet(t *testing.T) *v1alpha1.SidecarSet {
	t.Helper()
	set := sample.Read[v1alpha1.SidecarSet](t, "../sample/sidecarset.yaml")
	set.UID, set.Generation = "set-uid", 1
	return set
}

func TestComputeStatus(t *testing.T) {
	const left = "2 of 5 Pods run another image than the declared one"
	rolling := Counts{Matched: 5, Updated: 3, Ready: 4, Outdated: 2}
	waits := rolling
	waits.Waiting = key("a")
	invalid := field.ErrorList{field.Required(field.NewPath("spec", "selector"), "say which")}
	for name, test := range map[string]struct {
		paused bool
		result outcome
		want   []metav1.Condition
	}{
		"nothing to tell": {false, outcome{counts: Counts{Matched: 5, Updated: 5, Ready: 4}}, nil},
		"rolling": {false, outcome{counts: rolling}, []metav1.Condition{
			{Type: "Updating", Status: "True", Reason: "UpdateInProgress", Message: left + "; they are updated one at a time"},
		}},
		"waiting": {false, outcome{counts: waits}, []metav1.Condition{
			{Type: "Updating", Status: "True", Reason: "WaitingForPod", Message: left + "; waiting for Pod default/a to be ready, for one Pod at a time may be away"},
		}},
		"paused": {true, outcome{counts: waits}, []metav1.Condition{
			{Type: "Updating", Status: "False", Reason: "Paused", Message: left + "; spec.paused holds the update back"},
		}},
		"paused with nothing to do": {true, outcome{counts: Counts{Matched: 5, Updated: 5}}, nil},
		"refused": {false, outcome{counts: rolling, failure: errors.New("no")}, []metav1.Condition{
			{Type: "Updating", Status: "False", Reason: "UpdateFailed", Message: left + ": no"},
		}},
		"more than the image": {false, outcome{counts: Counts{Matched: 5, Updated: 1, NotUpdatable: 4}}, []metav1.Condition{
			{Type: "NotUpdatableInPlace", Status: "True", Reason: "OtherFieldsChanged",
				Message: "4 of 5 Pods cannot be updated in place, because more than the image changed; each gets the sidecars of now when it is created anew"},
		}},
		"invalid": {false, outcome{counts: rolling, invalid: invalid}, []metav1.Condition{
			{Type: "Invalid", Status: "True", Reason: "InvalidSpec", Message: "nothing is injected and nothing is updated: spec.selector: Required value: say which"},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			set := sampleSet(t)
			set.Spec.Paused = test.paused
			for i := range test.want {
				test.want[i].ObservedGeneration = 1
			}
			counts := test.result.counts
			want := v1alpha1.SidecarSetStatus{
				ObservedGeneration: 1, Conditions: test.want,
				MatchedPods: int32(counts.Matched), UpdatedPods: int32(counts.Updated), ReadyPods: int32(counts.Ready), // #nosec G115 -- small
			}
			got := computeStatus(set, test.result)
			if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(metav1.Condition{}, "LastTransitionTime")); diff != "" {
				t.Error(diff)
			}
			for i := range got.Conditions {
				got.Conditions[i].LastTransitionTime = metav1.NewTime(time.Unix(1, 0))
			}
			set.Status = got
			if diff := cmp.Diff(got, computeStatus(set, test.result)); diff != "" {
				t.Errorf("computed again:\n%s", diff)
			}
		})
	}
}

// Events come with what is new: each Pod's turn is none.
func TestNewlyTold(t *testing.T) {
	progress := metav1.Condition{Type: "Updating", Status: "True", Reason: "UpdateInProgress"}
	waits := metav1.Condition{Type: "Updating", Status: "True", Reason: "WaitingForPod"}
	paused := metav1.Condition{Type: "Updating", Status: "False", Reason: "Paused"}
	failed := metav1.Condition{Type: "Updating", Status: "False", Reason: "UpdateFailed"}
	other := metav1.Condition{Type: "NotUpdatableInPlace", Status: "True", Reason: "OtherFieldsChanged"}
	for name, test := range map[string]struct{ old, updated, want []metav1.Condition }{
		"the same":       {[]metav1.Condition{other, progress}, []metav1.Condition{other, progress}, nil},
		"begins":         {nil, []metav1.Condition{progress}, []metav1.Condition{progress}},
		"next Pod":       {[]metav1.Condition{progress}, []metav1.Condition{waits}, nil},
		"is paused":      {[]metav1.Condition{waits}, []metav1.Condition{paused}, []metav1.Condition{paused}},
		"fails":          {[]metav1.Condition{paused}, []metav1.Condition{failed}, []metav1.Condition{failed}},
		"not in place":   {[]metav1.Condition{progress}, []metav1.Condition{other}, []metav1.Condition{other}},
		"all is as told": {[]metav1.Condition{other}, nil, nil},
	} {
		if diff := cmp.Diff(test.want, newlyTold(test.old, test.updated)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	if got := eventReason(other); got != "NotUpdatableInPlace" {
		t.Errorf("got %s", got)
	}
}
