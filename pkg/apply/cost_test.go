//go:build bench

package apply

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/example/nginx-operator/test/harness/cost"
)

func TestCosts(t *testing.T) {
	declared, err := declaration(deployment())
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]cost.Case{}
	for name, record := range hostileRecords() {
		cases["record, "+name] = cost.Of(func() { sanitizeRecord(deployment(), record) })
	}
	for name, object := range hugeObjects() {
		cases["fingerprint, "+name] = cost.Of(func() { fingerprint(object) })
		if live, ok := object.(*appsv1.Deployment); ok {
			cases["merge, "+name] = cost.Of(func() { requirePatch(t, live, declared, declared) })
		}
	}
	cost.Check(t, "child", cases)
}
