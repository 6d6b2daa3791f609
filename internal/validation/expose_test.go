package validation

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/example/nginx-operator/api/v1alpha2"
)

// TestExpose verifies rules that the schema does not have.
func TestExpose(t *testing.T) {
	const neither = "spec.expose: Invalid value: must have exactly one of ingress and httpRoute; set one, or remove expose"
	annotated := func(key, value string) *v1alpha2.Expose {
		return &v1alpha2.Expose{Ingress: &v1alpha2.Ingress{Annotations: map[string]string{key: value}}}
	}
	for name, test := range map[string]struct {
		expose *v1alpha2.Expose
		want   []string
	}{
		"nothing":    {},
		"annotation": {expose: annotated("example.com/a", "b")},
		"no way in":  {expose: &v1alpha2.Expose{}, want: []string{neither}},
		"much": {expose: annotated("a", strings.Repeat("\x01", 12_000)), want: []string{
			"spec.expose: Invalid value: has 72049 bytes as JSON, and the limit is 65536; shorten the annotations",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, err := range Spec(&v1alpha2.NginxOperatorSpec{Expose: test.expose}, field.NewPath("spec")) {
				got = append(got, err.Error())
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestVerdictOnAnIngress verifies that the API server's error in an Ingress becomes an error of the
// user's field.
func TestVerdictOnAnIngress(t *testing.T) {
	rules := field.NewPath("spec", "rules")
	err := refused(
		field.Invalid(rules.Index(1).Child("host"), "A", "is no name"),
		field.Invalid(rules.Index(0).Child("http", "paths").Index(2).Child("path"), "a", "must be an absolute path"),
		field.Invalid(field.NewPath("spec", "ingressClassName"), "A", "is no name"),
		field.Invalid(field.NewPath("annotations").Child("kubernetes.io/ingress.class"), "a", "can not be set when the class field is also set"),
		field.Invalid(field.NewPath("spec", "tls").Index(0).Child("hosts").Index(0), "A", "is no name"),
	)
	want := []string{
		`spec.expose.ingress.hosts[1].host: Invalid value: "A": is no name`,
		`spec.expose.ingress.hosts[0].paths[2]: Invalid value: "a": must be an absolute path`,
		`spec.expose.ingress.className: Invalid value: "A": is no name`,
		`spec.expose.ingress.annotations.kubernetes.io/ingress.class: Invalid value: "a": can not be set when the class field is also set`,
	}
	var got []string
	for _, one := range Verdict(err, nil, field.NewPath("spec")) {
		got = append(got, one.Error())
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
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
