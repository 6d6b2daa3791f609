package record

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/fixture"
	"github.com/example/nginx-operator/internal/operand"
	"github.com/example/nginx-operator/internal/wellknown"
)

// TestAppliedRecord verifies that the record that the Deployment references is applied, not the
// newest record. A failed record is never applied.
func TestAppliedRecord(t *testing.T) {
	records := []appsv1.ControllerRevision{
		{ObjectMeta: metav1.ObjectMeta{Name: "web-newest"}},
		{ObjectMeta: metav1.ObjectMeta{Name: "web-named"}},
		{ObjectMeta: metav1.ObjectMeta{Name: "web-good"}},
	}
	for name, test := range map[string]struct {
		named, good string
		failed      []string
		want        string
	}{
		"no label, as older releases wrote it": {want: "web-newest"},
		"no label, and the newest has failed":  {failed: []string{"web-newest"}, good: "web-good", want: "web-named"},
		"the Deployment names it":              {named: "named", good: "web-good", want: "web-named"},
		"the named record has failed":          {named: "named", good: "web-good", failed: []string{"web-named"}, want: "web-good"},
		"the named record is gone":             {named: "gone", good: "web-good", want: "web-good"},
		"nothing was good":                     {named: "gone", want: "web-newest"},
		"all have failed":                      {named: "named", failed: []string{"web-named", "web-good", "web-newest"}},
	} {
		t.Run(name, func(t *testing.T) {
			object := fixture.NewObject()
			if test.good != "" {
				object.Status.LastGoodRevision = &v1alpha2.GoodRevision{Revision: test.good}
			}
			for _, failed := range test.failed {
				object.Status.FailedRevisions = append(object.Status.FailedRevisions, v1alpha2.FailedRevision{Revision: failed})
			}
			deployment := fixture.NewDeployment(1)
			if test.named != "" {
				deployment.Labels = map[string]string{wellknown.LabelRecord: test.named}
			}
			got := ""
			if found := Applied(object, records, deployment); found != nil {
				got = found.Name
			}
			if got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}

// TestRecordNamesOfOlderRelease verifies that record names of release 0.5.1 match while the status
// has them, so that an upgrade neither retries a change that was rolled back nor promotes another
// revision. Release 0.5.1 computes exactly these names for these objects.
func TestRecordNamesOfOlderRelease(t *testing.T) {
	plain := fixture.NewObject()
	tuned := fixture.NewObject(func(s *v1alpha2.NginxOperatorSpec) {
		s.Rollout = &v1alpha2.Rollout{AutomaticRollback: ptr.To(false)}
	})
	in := operand.Inputs{Image: fixture.Image, Config: operand.Configuration{Hash: "abc"}}
	name := func(object *v1alpha2.NginxOperator) string {
		t.Helper()
		record, err := desiredRevision(object, in)
		if err != nil {
			t.Fatal(err)
		}
		return record.Name
	}
	const plainName, tunedName = "web-2acc7aa682", "web-350d75e50e"
	if got := name(plain); got != plainName {
		t.Errorf("without rollout: %s, want %s", got, plainName)
	}
	if got := name(tuned); got != plainName {
		t.Errorf("with rollout: %s, want %s", got, plainName)
	}
	paused := plain.DeepCopy()
	paused.Spec.Paused = true
	if got := name(paused); got != plainName {
		t.Errorf("paused: %s, want %s", got, plainName)
	}
	good, failed := tuned.DeepCopy(), tuned.DeepCopy()
	good.Status.LastGoodRevision = &v1alpha2.GoodRevision{Revision: tunedName}
	failed.Status.FailedRevisions = []v1alpha2.FailedRevision{{Revision: tunedName}}
	failed.Spec.Paused = true
	for _, object := range []*v1alpha2.NginxOperator{good, failed} {
		if got := name(object); got != tunedName {
			t.Errorf("in the status: %s, want %s", got, tunedName)
		}
	}
}
