package rollout

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/fixture"
	"github.com/example/nginx-operator/internal/revision"
)

// TestFirstContact verifies what the first contact with an object of an earlier release says about
// its Pods. The change is the release's only if the spec was applied.
func TestFirstContact(t *testing.T) {
	progressing := func(status metav1.ConditionStatus) []metav1.Condition {
		return []metav1.Condition{{Type: v1alpha2.ConditionProgressing, Status: status}}
	}
	type object = v1alpha2.NginxOperator
	edited := func(o *object) { o.Generation++ }
	blocked := func(o *object) { o.Status.Conditions = progressing(metav1.ConditionFalse) }
	rolling := func(o *object) { o.Status.LastGoodRevision.Revision = "web-b" }
	for name, test := range map[string]struct {
		change   func(*v1alpha2.NginxOperator)
		declared *revision.Declaration
		pods     string
		// live, good, and failed are the IDs in the status.
		live, good, failed string
	}{
		"current":                   {pods: "new", live: "user-new", good: "user-new"},
		"a release changes it":      {pods: "old", live: "user-old", good: "user-old"},
		"edited":                    {change: edited, pods: "old", live: "-old", good: "-old"},
		"edited, to the same Pods":  {change: edited, pods: "new", live: "user-new", good: "user-new"},
		"paused":                    {change: func(o *v1alpha2.NginxOperator) { o.Spec.Paused = true }, pods: "old", live: "-old", good: "-old"},
		"blocked still":             {declared: &revision.Declaration{}, pods: "old", live: "-old", good: "-old"},
		"blocked before":            {change: blocked, pods: "old", live: "-old", good: "-old"},
		"rolling":                   {change: rolling, pods: "new", live: "user-new", good: "user-"},
		"the first Pods never were": {change: func(o *v1alpha2.NginxOperator) { o.Status.LastGoodRevision = nil }, pods: "new", live: "user-new"},
		"rolled back": {change: func(o *v1alpha2.NginxOperator) {
			o.Status.FailedRevisions = []v1alpha2.FailedRevision{{Revision: "web-c"}}
		}, pods: "old", live: "-old", good: "-old", failed: "user-new"},
	} {
		t.Run(name, func(t *testing.T) {
			object := fixture.NewObject()
			object.Status.ObservedGeneration, object.Status.Conditions = object.Generation, progressing(metav1.ConditionTrue)
			object.Status.LastGoodRevision = &v1alpha2.GoodRevision{Revision: "web-a"}
			declared := &revision.Declaration{Change: "user-new"}
			if test.declared != nil {
				declared = nil
			}
			if test.change != nil {
				test.change(object)
			}
			recognizeStatus(object, declared, "a", test.pods)
			status := &object.Status
			if of := status.DeclaredRevision; of.Revision != "a" || of.Change != test.live {
				t.Errorf("declared %+v", of)
			}
			if good := status.LastGoodRevision; good != nil && good.Change != test.good || good == nil && test.good != "" {
				t.Errorf("good %+v", good)
			}
			for _, failed := range status.FailedRevisions {
				if failed.Change != test.failed {
					t.Errorf("failed %+v", failed)
				}
			}
		})
	}
}
