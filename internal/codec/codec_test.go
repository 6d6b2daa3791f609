package codec

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/pkg/bounds/boundstest"
)

// TestQuantities verifies that each field with quantities is checked, and named in the error.
func TestQuantities(t *testing.T) {
	volumes := []any{
		nil, map[string]any{"emptyDir": map[string]any{"sizeLimit": "1Mi"}}, map[string]any{"emptyDir": map[string]any{"sizeLimit": "1e-999"}},
	}
	if errs := Quantities(map[string]any{"volumes": volumes}, field.NewPath("spec")); len(errs) != 1 ||
		errs[0].Field != "spec.volumes[2].emptyDir.sizeLimit" {
		t.Error(errs)
	}
	resources := map[string]any{"resources": map[string]any{"limits": map[string]any{"cpu": "1e-999", "memory": "1Gi"}}}
	if errs := Quantities(resources, field.NewPath("spec")); len(errs) != 1 || errs[0].Field != "spec.resources.limits[cpu]" {
		t.Error(errs)
	}
	containers := map[string]any{"initContainers": []any{resources}, "sidecars": []any{map[string]any{}, resources}}
	if errs := Quantities(containers, field.NewPath("spec")); len(errs) != 2 || errs[1].Field != "spec.sidecars[1].resources.limits[cpu]" {
		t.Error(errs)
	}
	if errs := Quantities(map[string]any{"monitoring": resources}, field.NewPath("spec")); len(errs) != 1 ||
		errs[0].Field != "spec.monitoring.resources.limits[cpu]" {
		t.Error(errs)
	}
	many := map[string]any{}
	for i := range maxQuantities + 1 {
		many[strings.Repeat("x", i)] = "1"
	}
	if errs := Quantities(map[string]any{"resources": map[string]any{"requests": many}}, nil); len(errs) != 1 {
		t.Error(errs)
	}
}

// TestEveryQuantityIsBounded verifies that a quantity that is too expensive to compute is rejected
// before it is computed, in every API field with a quantity.
func TestEveryQuantityIsBounded(t *testing.T) {
	found := 0
	itself := func(value any) any { return value }
	eachQuantity(reflect.TypeFor[v1alpha2.NginxOperatorSpec](), "spec", nil, itself, func(path string, spec any) {
		found++
		if errs := Quantities(spec.(map[string]any), field.NewPath("spec")); len(errs) != 1 {
			t.Errorf("%s: an endless quantity is let through: %v", path, errs)
		}
	})
	if found < 9 {
		t.Errorf("found %d places of quantities", found)
	}
}

// eachQuantity calls do for each field with a quantity in a type, with a value whose field has an
// extremely expensive quantity.
func eachQuantity(in reflect.Type, path string, above []reflect.Type, around func(any) any, do func(path string, whole any)) {
	if slices.Contains(above, in) {
		return
	}
	above = append(slices.Clone(above), in)
	switch {
	case in == reflect.TypeFor[resource.Quantity]():
		do(path, around("1e-999999999"))
	case in.Kind() == reflect.Pointer:
		eachQuantity(in.Elem(), path, above, around, do)
	case in.Kind() == reflect.Slice:
		eachQuantity(in.Elem(), path+"[]", above, func(value any) any { return around([]any{value}) }, do)
	case in.Kind() == reflect.Map:
		eachQuantity(in.Elem(), path+"[cpu]", above, func(value any) any { return around(map[string]any{"cpu": value}) }, do)
	case in.Kind() == reflect.Struct:
		for _, one := range reflect.VisibleFields(in) {
			if name, _, _ := strings.Cut(one.Tag.Get("json"), ","); name != "" && len(one.Index) == 1 {
				eachQuantity(one.Type, path+"."+name, above, func(value any) any { return around(map[string]any{name: value}) }, do)
			}
		}
	}
}

// TestReadAlone verifies which texts are readable. A quantity out of bounds is never decoded, in any
// field, and neither is a number that is too large for its field.
func TestReadAlone(t *testing.T) {
	quantity := func(value string) string {
		return `{"metadata":{"name":"a"},"spec":{"resources":{"limits":{"cpu":` + value + `}}}}`
	}
	const endless = "1e-999999999"
	for text, isReadable := range map[string]bool{
		quantity(`"1"`): true, quantity(`"128Mi"`): true, quantity(`"1e99"`): true, quantity(`"1e+99"`): true,
		quantity(`1.5`): true, quantity(`2`): true, quantity(`"` + strings.Repeat("9", 32) + `"`): true,
		quantity(`"` + strings.Repeat("9", 33) + `"`): false, quantity(`"` + strings.Repeat("9", 31) + `Mi"`): false,
		quantity(`"` + endless + `"`): false, quantity(`"1E+100"`): false, quantity(`"-1E999"`): false, quantity(`1e100`): false,
		quantity(`"\u0031e-999999999"`): false, quantity(`"1\u0065-999999999"`): false, quantity(`"many"`): false, quantity(`""`): false,
		quantity(`" ` + endless + `"`): false, quantity("\"\u00a0" + endless + "\u2003\""): false, quantity(`" 1"`): false,

		`{"metadata":{"name":"a"},"spec":{"unknown":["` + endless + `"]}}`:                                    true,
		`{"metadata":{"name":"a"},"spec":{"replicas":4294967296}}`:                                            false,
		`{"metadata":{"name":"a"},"spec":` + strings.Repeat("[", 70) + strings.Repeat("]", 70) + `}`:          false,
		`{"metadata":{"name":"a","creationTimestamp":"2026-01-01T00:00:00Z"},"spec":{"ports":[{"port":80}]}}`: true,

		`{"metadata":{"name":"a","uid":"1e999999-1111-4111-8111-111111111111","annotations":{"b":"x\n\"1e999"}}}`: true,
	} {
		object := ReadAlone([]byte(text))
		if why, isUnreadable := Unreadable(object); isUnreadable == isReadable || object.Name != "a" {
			t.Errorf("%s: unreadable %t (%s), name %q", text, isUnreadable, why, object.Name)
		}
	}
}

// FuzzDecode verifies that no text is expensive to read. The corpus has the slowest inputs of each
// decoder.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		`{"spec":{"resources":{"limits":{"cpu":"1e-1000000000"}}}}`, `{"spec":{"resources":{"limits":{"cpu":1e300}}}}`,
		`{"spec":{"resources":{"limits":{"cpu":"1e-1000000000"}},"resources":{}}}`,
		`{"spec":{"resources":{"limits":{"cpu":" 1e-1000000000"}}}}`, "{\"spec\":{\"resources\":{\"limits\":{\"cpu\":\"\u00a01e-1000000000\"}}}}",
		`{"metadata":{"managedFields":[{"fieldsV1":` + strings.Repeat(`{"a":`, 60) + "1" + strings.Repeat("}", 60) + `}]}}`,
		`{"spec":{"podTemplate":{"tolerations":[` + strings.Repeat("{},", 60_000) + `{}]}}}`,
		`{"metadata":{"creationTimestamp":"2026-01-01T00:00:00Z"},"spec":{"ports":[{"name":"http","port":8080}]}}`,
		`{"metadata":{"annotations":{"a":"` + strings.Repeat(`\u0000`, 100_000) + `"}}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		boundstest.Cheap(t, func() {
			if decoded := ReadAlone(raw); decoded.Spec.Resources != nil {
				for name, quantity := range decoded.Spec.Resources.Limits {
					quantity.Cmp(decoded.Spec.Resources.Requests[name])
				}
			}
		})
	})
}
