//go:build !race

package webhook

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/example/nginx-operator/api/v1alpha1"
	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/pkg/bounds/boundstest"
)

// reviewed returns the handlers that Setup registers. The key ends with an API version whose writes
// the handler admits.
func reviewed(t testing.TB) map[string]admission.Handler {
	t.Helper()
	handlers := newHandlers(t)
	return map[string]admission.Handler{
		"default " + v1alpha2.GroupVersion.Version:  handlers[PathDefault],
		"validate " + v1alpha2.GroupVersion.Version: handlers[PathValidate],
		"validate " + v1alpha1.GroupVersion.Version: handlers[PathValidate],
		"keep " + v1alpha1.GroupVersion.Version:     handlers[PathV1alpha1],
	}
}

// expensiveObjects returns the metadata and the spec of objects that are expensive to validate.
func expensiveObjects() map[string][2]string {
	list := func(n int, element func(i int) string) string {
		var out strings.Builder
		for i := range n {
			if i > 0 {
				out.WriteByte(',')
			}
			out.WriteString(element(i))
		}
		return "[" + out.String() + "]"
	}
	managers := func(n int, version, fields string) string {
		return `{"name":"web","managedFields":` + list(n, func(i int) string {
			return fmt.Sprintf(`{"manager":"m%d","operation":"Apply","apiVersion":%q,"fieldsType":"FieldsV1","fieldsV1":%s}`, i, version, fields)
		}) + "}"
	}
	one, two := v1alpha1.GroupVersion.String(), v1alpha2.GroupVersion.String()
	everywhere := `{"f:spec":{"f:port":{}}}`
	many := `{"f:spec":{` + strings.Trim(list(8_000, func(i int) string { return fmt.Sprintf(`"f:a%d":{}`, i) }), "[]") + "}}"
	return map[string][2]string{
		"appliers of v1alpha1":    {managers(2_000, one, everywhere), `{"port":80}`},
		"appliers of v1alpha2":    {managers(2_000, two, `{"f:spec":{"f:image":{}}}`), `{"image":"a"}`},
		"appliers without fields": {managers(3_000, two, "{}"), "{}"},
		"appliers of many fields": {managers(1, two, many), "{}"},
		"many labels": {
			`{"labels":{` + strings.Trim(list(16_000, func(i int) string { return fmt.Sprintf(`"a%d":""`, i) }), "[]") + "}}", "{}",
		},
		"ports": {
			"{}", `{"ports":` + list(5_000, func(i int) string { return fmt.Sprintf(`{"name":"p%d","port":%d}`, i, i) }) + "}",
		},
		"certificates": {
			"{}", `{"tls":` + list(5_000, func(i int) string { return fmt.Sprintf(`{"secretName":"s%d","port":%d}`, i, i) }) + "}",
		},
		"tolerations": {"{}", `{"podTemplate":{"tolerations":` + list(8_000, func(int) string { return "{}" }) + "}}"},
		"labels of Pods": {
			"{}", `{"podTemplate":{"labels":{` + strings.Trim(list(16_000, func(i int) string { return fmt.Sprintf(`"a%d":""`, i) }), "[]") + "}}}",
		},
		"a configuration":      {"{}", `{"config":{"inline":"` + strings.Repeat("a;", 49_000) + `"}}`},
		"a deep configuration": {"{}", `{"config":{"inline":"` + strings.Repeat("a{", 340_000) + `"}}`},
		"an annotation of v1alpha1": {
			`{"annotations":{"operator.example.com/v1alpha2":"{\"ports\":[` + strings.TrimSuffix(strings.Repeat("{},", 8_000), ",") + `]}"}}`, "{}",
		},
		"a deep annotation": {`{"annotations":{"operator.example.com/v1alpha2":"` + strings.Repeat("[", 9_000) + `"}}`, "{}"},
		"an endless quantity in there": {
			`{"annotations":{"operator.example.com/v1alpha2":"{\"resources\":{\"limits\":{\"cpu\":\"1e-1000000000\"}}}"}}`, "{}",
		},
		"an endless quantity": {"{}", `{"resources":{"limits":{"cpu":"1e-1000000000"}}}`},
		"a quantity twice":    {"{}", `{"resources":{"limits":{"cpu":"1e-1000000000"}},"resources":{}}`},
		"a wrong type":        {"[]", `[]`},
	}
}

// FuzzAdmission requires that every review is cheap and none panics, for any new and old object.
// Any Pod can post a review.
func FuzzAdmission(f *testing.F) {
	dearest := expensiveObjects()
	for _, name := range slices.Sorted(maps.Keys(dearest)) {
		dear := dearest[name]
		f.Add(dear[0], dear[1], "", "")
		f.Add(dear[0], dear[1], dear[0], dear[1])
		f.Add("{}", `{"port":80}`, dear[0], dear[1])
		f.Add(dear[0], dear[1], "{}", "{}")
	}
	handlers := reviewed(f)
	f.Fuzz(func(t *testing.T, metadata, spec, oldMetadata, oldSpec string) {
		for name, handler := range handlers {
			_, version, _ := strings.Cut(name, " ")
			raw := func(metadata, spec string) []byte {
				return fmt.Appendf(nil, `{"apiVersion":"%s/%s","kind":"NginxOperator","metadata":%s,"spec":%s}`,
					v1alpha2.GroupVersion.Group, version, metadata, spec)
			}
			request := admission.Request{}
			request.Operation, request.Name, request.Object.Raw = admissionv1.Create, "web", raw(metadata, spec)
			request.Kind = metav1.GroupVersionKind{Group: v1alpha2.GroupVersion.Group, Version: version, Kind: "NginxOperator"}
			request.RequestKind = request.Kind.DeepCopy()
			if oldMetadata+oldSpec != "" {
				request.Operation, request.OldObject.Raw = admissionv1.Update, raw(oldMetadata, oldSpec)
			}
			// The API server sends only valid JSON. A review with invalid JSON cannot be decoded.
			if !json.Valid(request.Object.Raw) || request.OldObject.Raw != nil && !json.Valid(request.OldObject.Raw) {
				return
			}
			boundstest.Cheap(t, func() { handler.Handle(t.Context(), request) })
			if t.Failed() {
				t.Fatal(name)
			}
		}
	})
}
