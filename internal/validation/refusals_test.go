package validation

import (
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/api/v1alpha2"
)

// TestRefusalsOfAnEqualSpec verifies that an equal spec gets the same answer, although a valid one is
// validated once.
func TestRefusalsOfAnEqualSpec(t *testing.T) {
	for replicas, want := range map[int32]int{7: 0, -7: 1} {
		for i := range 3 {
			got := Refusals(&v1alpha2.NginxOperatorSpec{Replicas: ptr.To(replicas)}, field.NewPath("spec"))
			if len(got) != want {
				t.Errorf("answer %d for %d replicas: %v, want %d refusals", i, replicas, got, want)
			}
		}
	}
}
