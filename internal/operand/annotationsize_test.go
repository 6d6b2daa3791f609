package operand

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/fixture"
	"github.com/example/nginx-operator/internal/ratchet"
	"github.com/example/nginx-operator/internal/validation"
	"github.com/example/nginx-operator/internal/wellknown"
	"github.com/example/nginx-operator/pkg/apply"
)

// TestOversizedChildren verifies the limit of annotations. An annotation counts twice, because the
// last declaration has a copy of it. So the limit is 128 KiB and not 256 KiB, and lower for
// characters that JSON escapes. The API server accepts every child that is not refused.
func TestOversizedChildren(t *testing.T) {
	of := func(text string) map[string]string { return map[string]string{"example.com/a": text} }
	service := func(text string) func(*v1alpha2.NginxOperatorSpec) {
		return func(s *v1alpha2.NginxOperatorSpec) { s.Service = &v1alpha2.Service{Annotations: of(text)} }
	}
	pods := func(text string) func(*v1alpha2.NginxOperatorSpec) {
		return func(s *v1alpha2.NginxOperatorSpec) { s.PodTemplate = &v1alpha2.PodTemplate{Annotations: of(text)} }
	}
	ingress := func(text string) func(*v1alpha2.NginxOperatorSpec) {
		return func(s *v1alpha2.NginxOperatorSpec) {
			s.Expose = &v1alpha2.Expose{Ingress: &v1alpha2.Ingress{Annotations: of(text), Hosts: []v1alpha2.IngressHost{{Host: "a.example.com"}}}}
		}
	}
	args := func(text string) func(*v1alpha2.NginxOperatorSpec) {
		return func(s *v1alpha2.NginxOperatorSpec) {
			s.Sidecars = []v1alpha2.Container{{Name: "a", Args: []string{text}}}
		}
	}
	text := func(kib int) string { return strings.Repeat("x", kib<<10) }
	for name, test := range map[string]struct {
		change func(*v1alpha2.NginxOperatorSpec)
		want   string
	}{
		"nothing":                            {func(*v1alpha2.NginxOperatorSpec) {}, ""},
		"a Service below the limit":          {service(text(124)), ""},
		"a Service above the limit":          {service(text(130)), "spec.service.annotations"},
		"a Service with escapes, below":      {service(strings.Repeat(`"`, 80<<10)), ""},
		"a Service with escapes, above":      {service(strings.Repeat(`"`, 88<<10)), "spec.service.annotations"},
		"a Service with many escapes, below": {service(strings.Repeat("<", 32<<10)), ""},
		"the largest annotations of Pods":    {pods(text(196)), ""},
		"the largest of an Ingress":          {ingress(text(63)), ""},
		"the largest arguments":              {args(text(196)), ""},
	} {
		t.Run(name, func(t *testing.T) {
			r, object := Release{Image: fixture.Image}, fixture.NewObject(test.change)
			for _, problem := range validation.Spec(&object.Spec, SpecPath) {
				t.Fatalf("the spec of the test is refused for another reason: %v", problem)
			}
			refusals := r.oversized(object)
			if got := ""; len(refusals) == 1 {
				if got = refusals[0].Err.Field; got != test.want || !strings.Contains(refusals[0].Err.Detail, "shorten this field") {
					t.Errorf("%v is refused, want %q", refusals[0].Err, test.want)
				}
			} else if test.want != "" || len(refusals) > 1 {
				t.Errorf("%d refusals, want one of %q", len(refusals), test.want)
			}
			if added, stored := ratchet.Split(refusals, r.oversized(object)); len(added) > 0 || len(stored) != len(refusals) {
				t.Errorf("a stored value is refused: %v", added)
			}
			if test.want != "" {
				return
			}

			for _, child := range Desired(object, r.specInputs(object)) {
				size, err := apply.AnnotationBytes(child, wellknown.AnnotationLastDeclared)
				if err != nil {
					t.Fatal(err)
				}
				written := maps.Clone(child.GetAnnotations())
				own := 0
				for key, value := range written {
					own += len(key) + len(value)
				}
				if written == nil {
					written = map[string]string{}
				}
				written["record"] = strings.Repeat("x", size-own-len("record"))
				if err := apivalidation.ValidateAnnotationsSize(written); err != nil {
					t.Errorf("the API server refuses the %T: %v", child, err)
				}
			}
		})
	}
}

// TestOversizedRatchets verifies that an annotation added to a large stored one is a new value.
func TestOversizedRatchets(t *testing.T) {
	r := Release{Image: fixture.Image}
	object := fixture.NewObject(func(s *v1alpha2.NginxOperatorSpec) {
		s.Service = &v1alpha2.Service{Annotations: map[string]string{"example.com/a": strings.Repeat("x", 140<<10)}}
	})
	before := r.Refusals(object)
	object.Spec.Ports = []v1alpha2.Port{{Name: "web", Port: 8081}}
	if added, stored := ratchet.Split(before, r.Refusals(object)); len(added) != 0 || len(stored) != 1 {
		t.Errorf("another port: added %v, stored %v", added, stored)
	}
	object.Spec.Service.Annotations["example.com/b"] = "x"
	if added, _ := ratchet.Split(before, r.Refusals(object)); len(added) != 1 || added[0].Field != "spec.service.annotations" {
		t.Errorf("another annotation: added %v", added)
	}
}

// TestRefusedAsAWholeIsNotRendered verifies that no children are rendered to find refused patches
// if a list is longer than the schema allows.
func TestRefusedAsAWholeIsNotRendered(t *testing.T) {
	for ports, want := range map[int]bool{1: true, 17: false} {
		object := fixture.NewObject(func(s *v1alpha2.NginxOperatorSpec) {
			for i := range ports {
				s.Ports = append(s.Ports, v1alpha2.Port{Name: fmt.Sprintf("p%d", i), Port: int32(8000 + i)})
			}
			s.Patches = []v1alpha2.Patch{{
				Target: v1alpha2.PatchTarget{Kind: "Deployment"}, Patch: "spec: {template: {spec: {automountServiceAccountToken: true}}}",
			}}
		})
		isOfPatch := func(refusal ratchet.Refusal) bool { return strings.HasPrefix(refusal.Err.Field, "spec.patches") }
		if got := (Release{Image: fixture.Image}).Refusals(object); slices.ContainsFunc(got, isOfPatch) != want {
			t.Errorf("%d ports: %v", ports, got)
		}
	}
}
