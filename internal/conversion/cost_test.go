//go:build bench

package conversion

import (
	"fmt"
	"strings"
	"testing"

	"github.com/example/nginx-operator/api/v1alpha1"
	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/wellknown"
	"github.com/example/nginx-operator/pkg/bounds"
	"github.com/example/nginx-operator/test/harness/cost"
)

// largest returns the largest object that can be converted, with text repeated in its fields.
func largest(t *testing.T, from, to, before, text, after string) []byte {
	t.Helper()
	for count := bounds.MaxBytes / len(text); count > 0; count = count * 19 / 20 {
		raw := fmt.Appendf(nil, `{"apiVersion":%q,"kind":"NginxOperator",%s%s%s}`, from, before, strings.Repeat(text, count), after)
		if _, err := convertRaw(raw, to); err == nil {
			return raw
		}
	}
	t.Fatalf("no object with %s is converted", text)
	return nil
}

func TestCosts(t *testing.T) {
	v1, v2 := v1alpha1.GroupVersion.String(), v1alpha2.GroupVersion.String()
	kept := fmt.Sprintf(`"metadata":{"annotations":{%q:"`, wellknown.AnnotationV1alpha2)
	quoted := strings.NewReplacer(`"`, `\"`).Replace
	cases := map[string]cost.Case{}
	for name, test := range map[string]struct{ from, to, before, text, after string }{
		"objects to v1alpha1": {v2, v1, `"spec":{"ports":[`, "{},", "{}]}"},
		"objects to v1alpha2": {v1, v2, `"spec":{"ports":[`, "{},", "{}]}"},
		"lists to v1alpha1":   {v2, v1, `"spec":{"ports":[`, "[],", "[]]}"},
		"numbers to v1alpha1": {v2, v1, `"spec":{"ports":[`, "1,", "1]}"},
		"text to v1alpha1":    {v2, v1, `"spec":{"config":{"inline":"`, "x", `"}}`},
		"escapes to v1alpha1": {v2, v1, `"spec":{"config":{"inline":"`, `\"`, `"}}`},
		"metadata":            {v1, v2, `"metadata":{"finalizers":[`, `"a/b",`, `"a/b"]}`},
		"kept objects":        {v1, v2, kept + quoted(`{"ports":[`), "{},", `{}]}"}}`},
		"kept text":           {v1, v2, kept + quoted(`{"image":"`), "x", quoted(`"}`) + `"}}`},
		"kept depth":          {v1, v2, kept, "[", `"}}`},
	} {
		raw := largest(t, test.from, test.to, test.before, test.text, test.after)
		cases[name] = cost.Of(func() {
			if _, err := convertRaw(raw, test.to); err != nil {
				t.Error(err)
			}
		})
	}
	cost.Check(t, "conversion", cases)
}
