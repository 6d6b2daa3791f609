package rollout

import (
	"strings"
	"testing"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/fixture"
	"github.com/example/nginx-operator/internal/operand"
	"github.com/example/nginx-operator/internal/record"
)

// TestTried verifies that the message of a rollback lists the changes and has a limited length.
func TestTried(t *testing.T) {
	in := operand.Inputs{Image: fixture.Image, Config: operand.Configuration{Hash: "abc"}}
	applied, err := record.NewDeclaration(fixture.NewObject(), in, nil)
	if err != nil {
		t.Fatal(err)
	}
	good := &v1alpha2.GoodRevision{Image: applied.Inputs.Image, ConfigHash: applied.Inputs.Config.Hash}
	if got := tried(applied, good); got != "generation 3 (Pod template)" {
		t.Error(got)
	}
	applied.Inputs.Image, good.ConfigHash = strings.Repeat("x", 512), "other"
	if got := tried(applied, good); !strings.Contains(got, "configuration") || len(got) > 400 {
		t.Error(got)
	}
}
