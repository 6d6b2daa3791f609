//go:build bench

package bounds

import (
	"strings"
	"testing"

	"github.com/example/nginx-operator/test/harness/cost"
)

func TestCosts(t *testing.T) {
	many := func(text string) string { return strings.Repeat(text, MaxValues-100) }
	cases := map[string]cost.Case{}
	for name, text := range map[string]string{
		"a text":        `{"metadata":{"annotations":{"a":"` + strings.Repeat("x", MaxBytes-100) + `"}}}`,
		"escapes":       `{"metadata":{"annotations":{"a":"` + strings.Repeat(`\u0000`, MaxBytes/6-100) + `"}}}`,
		"empty objects": `{"spec":{"tolerations":[` + strings.Repeat("{},", MaxValues/2-100) + `{}]}}`,
		"numbers":       `{"spec":{"unknown":[` + many("1e300,") + `1]}}`,
		"texts":         `{"metadata":{"finalizers":[` + many(`"a",`) + `"a"]}}`,
		"deep":          strings.Repeat(`{"a":`, MaxDepth-1) + "1" + strings.Repeat("}", MaxDepth-1),
		"too many":      `{"spec":{"unknown":[` + strings.Repeat("{},", MaxBytes/3-100) + `{}]}}`,
	} {
		cases[name] = cost.Of(func() {
			if object, err := Read([]byte(text)); err == nil {
				_, _ = Decode(object)
			}
		})
	}
	cost.Check(t, "object", cases)
}
