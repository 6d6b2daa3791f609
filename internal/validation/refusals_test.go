package validation

import (
	"reflect"
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

// TestRefusalsOfVolumesWithoutSource verifies that Refusals names a volume without a source, and that
// each field of Volume that is a pointer is a source.
func TestRefusalsOfVolumesWithoutSource(t *testing.T) {
	volumes := []v1alpha2.Volume{{Name: "none"}}
	for sources, i := reflect.TypeFor[v1alpha2.Volume](), 0; i < sources.NumField(); i++ {
		if sources.Field(i).Type.Kind() != reflect.Pointer {
			continue
		}
		volume := v1alpha2.Volume{Name: sources.Field(i).Name}
		source := reflect.ValueOf(&volume).Elem().Field(i)
		source.Set(reflect.New(source.Type().Elem()))
		volumes = append(volumes, volume)
	}
	if len(volumes) < 8 {
		t.Fatalf("only %d sources were found", len(volumes)-1)
	}
	got := withoutSource(volumes, field.NewPath("spec", "volumes"))
	if len(got) != 1 || got[0].Value != "none" || got[0].Err.Type != field.ErrorTypeRequired || got[0].Err.Field != "spec.volumes[0]" {
		t.Errorf("refusals %+v", got)
	}
}
