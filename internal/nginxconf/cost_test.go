//go:build bench

package nginxconf

import (
	"testing"

	"github.com/example/nginx-operator/test/harness/cost"
)

func TestCosts(t *testing.T) {
	cases := map[string]cost.Case{}
	for name, text := range hostile() {
		cases[name] = cost.Of(func() { Check(hostileSpec("registry.example.com/own:1"), Whole(text), nil, nil) })
	}
	cost.Check(t, "configuration", cases)
}
