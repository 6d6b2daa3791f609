package operatormanager

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/carried"
	"github.com/example/nginx-operator/internal/wellknown"
)

// TestCarriedRecordInTheCache verifies that the cache has the hash of a carried record, also if an
// object passes the transform twice, and that another client cannot write that form itself.
func TestCarriedRecordInTheCache(t *testing.T) {
	whole := carried.New("2acc7aa682", 1, []byte(`{"spec":{}}`))
	want, _ := carried.Parse(whole)
	cachedForm := func(annotation string) carried.Record {
		t.Helper()
		deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{
			Annotations: map[string]string{wellknown.AnnotationFirstDeclaration: annotation},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: v1alpha2.GroupVersion.String(), Kind: "NginxOperator", Name: "web", UID: "1", Controller: ptr.To(true),
			}},
		}}
		for range 2 {
			if _, err := slimDeployment(deployment); err != nil {
				t.Fatal(err)
			}
		}
		found, _ := carried.Parse(deployment.Annotations[wellknown.AnnotationFirstDeclaration])
		return found
	}
	if got := cachedForm(whole); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := cachedForm(carried.Shorten(whole)); got.Hash == want.Hash {
		t.Error("the form of the cache is believed in the stored object")
	}
}
