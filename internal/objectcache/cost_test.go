//go:build bench

package objectcache

import (
	"testing"

	"github.com/example/nginx-operator/test/harness/cost"
)

func TestCosts(t *testing.T) {
	cases := map[string]cost.Case{}
	for name, newObject := range hugeKinds() {
		cases[name] = func() func() {
			object := newObject(0)
			return func() {
				if _, err := slim(object); err != nil {
					t.Error(err)
				}
			}
		}
	}
	cost.Check(t, "transform", cases)
}
