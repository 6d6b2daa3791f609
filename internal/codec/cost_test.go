//go:build bench

package codec

import (
	"strings"
	"testing"

	"github.com/example/nginx-operator/pkg/bounds"
	"github.com/example/nginx-operator/test/harness/cost"
)

func TestCosts(t *testing.T) {
	many := func(text string) string { return strings.Repeat(text, bounds.MaxValues-100) }
	cases := map[string]cost.Case{}
	for name, text := range map[string]string{
		"a text":        `{"metadata":{"annotations":{"a":"` + strings.Repeat("x", bounds.MaxBytes-100) + `"}}}`,
		"escapes":       `{"metadata":{"annotations":{"a":"` + strings.Repeat(`\u0000`, bounds.MaxBytes/6-100) + `"}}}`,
		"empty objects": `{"spec":{"tolerations":[` + strings.Repeat("{},", bounds.MaxValues/2-100) + `{}]}}`,
		"numbers":       `{"spec":{"unknown":[` + many("1e300,") + `1]}}`,
		"texts":         `{"metadata":{"finalizers":[` + many(`"a",`) + `"a"]}}`,
		"deep":          strings.Repeat(`{"a":`, bounds.MaxDepth-1) + "1" + strings.Repeat("}", bounds.MaxDepth-1),
		"too many":      `{"spec":{"unknown":[` + strings.Repeat("{},", bounds.MaxBytes/3-100) + `{}]}}`,
	} {
		cases[name] = cost.Of(func() { _, _ = read([]byte(text)) })
	}
	cost.Check(t, "object", cases)
}
