package record

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/carried"
	"github.com/example/nginx-operator/internal/fixture"
	"github.com/example/nginx-operator/internal/wellknown"
)

// TestCarriedRecordCountsLikeAControllerRevision verifies that the record that a Deployment carries
// counts as long as the operator would keep it as a ControllerRevision. An older one must not count:
// its declaration would look like one whose rollout has begun, and would need no rollout slot.
func TestCarriedRecordCountsLikeAControllerRevision(t *testing.T) {
	const first, second = "2acc7aa682", "9b1d7e0c55"
	annotation := carried.New(first, 1, []byte(`{"spec":{}}`))
	found, _ := carried.Parse(annotation)
	for name, test := range map[string]struct {
		applied, good, hash string
		owner               bool
		want                int
	}{
		"applied":                          {first, "", found.Hash, true, 1},
		"applied, and good":                {first, first, found.Hash, true, 1},
		"good, while another is applied":   {second, first, found.Hash, true, 1},
		"applied, while another is good":   {first, second, found.Hash, true, 1},
		"another is applied, none is good": {second, "", found.Hash, true, 0},
		"another is applied and good":      {second, second, found.Hash, true, 0},
		"the status has another hash":      {first, first, "other", true, 0},
		"the status has no hash":           {first, first, "", true, 0},
		"of another owner":                 {first, first, found.Hash, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			object := fixture.NewObject()
			object.Status.FirstDeclarationHash = test.hash
			if test.good != "" {
				object.Status.LastGoodRevision = &v1alpha2.GoodRevision{Revision: Name(object, test.good)}
			}
			deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{
				Labels:      map[string]string{wellknown.LabelRecord: test.applied},
				Annotations: map[string]string{wellknown.AnnotationFirstDeclaration: annotation},
			}}
			if test.owner {
				deployment.OwnerReferences = []metav1.OwnerReference{{UID: object.UID, Controller: ptr.To(true)}}
			}
			if got := WithCarried(object, deployment, nil); len(got) != test.want {
				t.Errorf("%d records, want %d", len(got), test.want)
			}
		})
	}
	if got := WithCarried(fixture.NewObject(), nil, nil); len(got) != 0 {
		t.Errorf("%d records without a Deployment", len(got))
	}
}
