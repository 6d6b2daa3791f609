package validation

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/ratchet"
)

// TestRefusalsOfAnEqualSpec verifies that an equal spec gets the same answer, although a valid one
// is validated once.
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

// TestRefusalsOfVolumesWithoutSource verifies that Refusals names a volume without a source, and
// that each field of Volume that is a pointer is a source.
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

// TestRefusalsOfStoredValues verifies that a stored violation of the schema is not new after a
// change of another field, or of its index. It is new if its value changes. A CEL rule about a list
// has the list as value. If other violations are unknown, any change of the spec is new.
func TestRefusalsOfStoredValues(t *testing.T) {
	const paths, families = "expose: {ingress: {hosts: [{host: a, paths: [/a;b]}]}}", "service: {ipFamilies: [IPv4, IPv6, IPv4]}"
	path := field.NewPath("spec")
	for name, test := range map[string]struct {
		before, now   string
		added, stored int
	}{
		"as stored":                     {paths, paths, 0, 1},
		"another field":                 {paths, paths + "\nreplicas: 3", 0, 1},
		"another index":                 {paths, "expose: {ingress: {hosts: [{host: b}, {host: a, paths: [/a;b]}]}}", 0, 1},
		"another value":                 {paths, "expose: {ingress: {hosts: [{host: a, paths: [/a;b, /c]}]}}", 1, 0},
		"a second one":                  {paths, paths + "\nreplicas: -1", 1, 1},
		"a long list":                   {families, families, 0, 2},
		"below a list that is too long": {families, families + "\nforceRedeploy: b", 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			added, stored := ratchet.Split(Refusals(specOf(t, test.before), path), Refusals(specOf(t, test.now), path))
			if len(added) != test.added || len(stored) != test.stored {
				t.Errorf("added %v, stored %v, want %d and %d", added, stored, test.added, test.stored)
			}
		})
	}
}

// TestRefusalsAreBounded verifies that the number of refusals of a large spec is bounded, and that
// it has a refusal of the whole spec.
func TestRefusalsAreBounded(t *testing.T) {
	for name, spec := range map[string]*v1alpha2.NginxOperatorSpec{
		"volumes": {Volumes: make([]v1alpha2.Volume, 5_000)},
		"text":    {Image: strings.Repeat("a", maxSpecBytes)},
	} {
		got := Refusals(spec, field.NewPath("spec"))
		isWhole := func(refusal ratchet.Refusal) bool { return refusal.Err.Field == "spec" }
		if len(got) > maxVolumes+2 || !slices.ContainsFunc(got, isWhole) {
			t.Errorf("%s: %d refusals", name, len(got))
		}
	}
}

// TestComplete verifies that Complete has the errors of the schema and of Spec.
func TestComplete(t *testing.T) {
	wantErrors(t, Complete(specOf(t, "{replicas: -1, image: ':'}"), field.NewPath("spec")),
		"spec.replicas: Invalid value", `spec.image: Invalid value: ":"`)
}
