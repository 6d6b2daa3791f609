package operand

import (
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/example/nginx-operator/internal/fixture"
)

// TestEditions verifies that a record restores the Pod template of its edition byte for byte. An
// unknown edition is restored as the newest one.
func TestEditions(t *testing.T) {
	object := fixture.NewObject()
	in := newInputs(t, object, "", false)
	in.Edition = 0
	old := DesiredDeployment(object, in)
	before := backward
	t.Cleanup(func() { backward = before })
	backward = []func(*corev1.PodTemplateSpec){
		func(p *corev1.PodTemplateSpec) { p.Annotations = nil },
		func(p *corev1.PodTemplateSpec) { p.Annotations = map[string]string{"edition": "1"} },
	}
	if diff := gocmp.Diff(old, DesiredDeployment(object, in)); diff != "" {
		t.Errorf("edition 0 (-want +got):\n%s", diff)
	}
	for edition, want := range map[int]string{0: "", 1: "1", 2: ""} {
		in.Edition = edition
		if got := DesiredDeployment(object, in).Spec.Template.Annotations["edition"]; got != want {
			t.Errorf("edition %d has %q", edition, got)
		}
	}
	for recorded, want := range map[int]int{-1: 0, 0: 0, 2: 2, 3: 2, 1 << 40: 2} {
		if got := KnownEdition(recorded); got != want {
			t.Errorf("edition %d is %d", recorded, got)
		}
	}
}
