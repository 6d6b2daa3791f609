package validation

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/api/v1alpha2"
)

// TestHTTPRoute verifies the bounds of fields that no schema validates.
func TestHTTPRoute(t *testing.T) {
	const at = "spec.expose.httpRoute."
	type gateways = []v1alpha2.GatewayReference
	one := gateways{{Name: "public"}}
	for name, test := range map[string]struct {
		route v1alpha2.HTTPRoute
		want  []string
	}{
		"a Gateway": {route: v1alpha2.HTTPRoute{ParentRefs: one}},
		"everything": {route: v1alpha2.HTTPRoute{
			ParentRefs: gateways{{Name: "a.b", Namespace: "infra", SectionName: "https", Port: ptr.To[int32](443)}}, Hostnames: []string{"*.a"},
		}},
		"no Gateway": {want: []string{
			at + "parentRefs: Required value: an HTTPRoute requires at least one Gateway",
		}},
		"9 Gateways": {v1alpha2.HTTPRoute{ParentRefs: make(gateways, 9)}, []string{at + "parentRefs: Too many: 9: must have at most 8 items"}},
		"no name":    {v1alpha2.HTTPRoute{ParentRefs: gateways{{}}}, []string{at + "parentRefs[0].name: Required value"}},
		"wrong names": {
			v1alpha2.HTTPRoute{ParentRefs: gateways{{Name: "A", Namespace: "a.b", SectionName: "-", Port: ptr.To[int32](0)}}},
			[]string{
				at + `parentRefs[0].name: Invalid value: "A"`, at + `parentRefs[0].namespace: Invalid value: "a.b"`,
				at + `parentRefs[0].sectionName: Invalid value: "-"`, at + "parentRefs[0].port: Invalid value: 0",
			},
		},
		"17 hostnames": {
			v1alpha2.HTTPRoute{ParentRefs: one, Hostnames: make([]string, 17)}, []string{at + "hostnames: Too many: 17: must have at most 16 items"},
		},
		"lengths": {v1alpha2.HTTPRoute{ParentRefs: one, Hostnames: []string{"", strings.Repeat("a", 254)}}, []string{
			at + "hostnames[0]: Required value", at + "hostnames[1]: Too long: may not be more than 253 bytes",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			expose := &v1alpha2.Expose{HTTPRoute: &test.route}
			wantErrors(t, Spec(&v1alpha2.NginxOperatorSpec{Expose: expose}, field.NewPath("spec")), test.want)
		})
	}
}

// wantErrors fails the test unless the errors have these prefixes.
func wantErrors(t *testing.T, errs field.ErrorList, want []string) {
	t.Helper()
	if len(errs) != len(want) {
		t.Fatalf("got %v", errs)
	}
	for i, err := range errs {
		if !strings.HasPrefix(err.Error(), want[i]) {
			t.Errorf("%v, want %s", err, want[i])
		}
	}
}

// TestVerdictOnAnHTTPRoute verifies that the API server's error in an HTTPRoute becomes an error of
// the user's field, and never has the path of a field of the HTTPRoute.
func TestVerdictOnAnHTTPRoute(t *testing.T) {
	spec := field.NewPath("spec")
	err := refused(
		field.Invalid(spec.Child("hostnames").Index(1), "A", "spec.hostnames[1] in body should match '^[a-z]+$'"),
		field.Invalid(spec.Child("parentRefs"), field.OmitValueType{}, "sectionName must be unique"),
		field.Invalid(spec.Child("rules").Index(0).Child("backendRefs"), "a", "is the operator's"),
	)
	var got []string
	for _, found := range Verdict(err, &v1alpha2.NginxOperatorSpec{Expose: &v1alpha2.Expose{HTTPRoute: &v1alpha2.HTTPRoute{}}}, spec) {
		got = append(got, found.Error())
	}
	want := []string{
		`spec.expose.httpRoute.hostnames[1]: Invalid value: "A": should match '^[a-z]+$'`,
		"spec.expose.httpRoute.parentRefs: Invalid value: sectionName must be unique",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
