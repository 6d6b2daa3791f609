package validation

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/example/nginx-operator/api/v1alpha2"
)

// TestExpose verifies the bounds of fields that no schema validates, because v1alpha1 stores them
// in an annotation.
func TestExpose(t *testing.T) {
	const at = "spec.expose.ingress.hosts"
	const neither = "spec.expose: Invalid value: must have exactly one of ingress and httpRoute; set one, or remove expose"
	hosts := func(hosts ...v1alpha2.IngressHost) *v1alpha2.Expose {
		return &v1alpha2.Expose{Ingress: &v1alpha2.Ingress{Hosts: hosts}}
	}
	annotated := func(key, value string) *v1alpha2.Expose {
		out := hosts(v1alpha2.IngressHost{Host: "a"})
		out.Ingress.Annotations = map[string]string{key: value}
		return out
	}
	for name, test := range map[string]struct {
		expose *v1alpha2.Expose
		want   []string
	}{
		"nothing":     {},
		"one host":    {expose: hosts(v1alpha2.IngressHost{Host: "a.example.com", Paths: []string{"/"}, TLSSecretName: "a.b"})},
		"annotation":  {expose: annotated("example.com/a", "b")},
		"no way in":   {expose: &v1alpha2.Expose{}, want: []string{neither}},
		"two ways in": {expose: &v1alpha2.Expose{Ingress: &v1alpha2.Ingress{}, HTTPRoute: &v1alpha2.HTTPRoute{}}, want: []string{neither}},
		"no host":     {expose: hosts(), want: []string{at + ": Required value: an Ingress requires at least one host"}},
		"no name":     {expose: hosts(v1alpha2.IngressHost{}), want: []string{at + "[0].host: Required value"}},
		"17 hosts":    {expose: hosts(make([]v1alpha2.IngressHost, 17)...), want: []string{at + ": Too many: 17: must have at most 16 items"}},
		"17 paths": {expose: hosts(v1alpha2.IngressHost{Paths: make([]string, 17)}), want: []string{
			at + "[0].paths: Too many: 17: must have at most 16 items",
		}},
		"a long path": {expose: hosts(v1alpha2.IngressHost{Host: "a", Paths: []string{"/", "/" + strings.Repeat("a", 256)}}), want: []string{
			at + "[0].paths[1]: Too long: may not be more than 256 bytes",
		}},
		"own annotation": {expose: annotated("operator.example.com/last-declared", "{}"), want: []string{
			"spec.expose.ingress.annotations[operator.example.com/last-declared]: Forbidden: this prefix is reserved for the operator; remove " +
				"the annotation, or use your own prefix",
		}},
		"much": {expose: annotated("a", strings.Repeat("\x01", 12_000)), want: []string{
			"spec.expose: Invalid value: has 72059 bytes as JSON, and the limit is 65536; shorten the annotations",
		}},
		"name of a Secret": {expose: hosts(v1alpha2.IngressHost{Host: "a", TLSSecretName: "A"}), want: []string{
			at + `[0].tlsSecretName: Invalid value: "A": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, ` +
				`'-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is ` +
				`'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`,
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
