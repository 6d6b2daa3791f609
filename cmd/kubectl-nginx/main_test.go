package main

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// TestDependencies verifies that the plugin, and the packages that only compute values, do not link
// the manager or its parts, and that the examples link nothing of the product except pkg.
func TestDependencies(t *testing.T) {
	const module = "github.com/example/nginx-operator/"
	manager := []string{
		"internal/objectcache", "internal/olm", "internal/options", "pkg/access", "pkg/certificates", "pkg/guard", "pkg/lists",
		"pkg/manager", "pkg/review", "pkg/serving",
	}
	cluster := slices.Concat(manager, []string{"internal/fleet", "internal/resolve", "internal/rollout", "pkg/reference"})
	for root, forbidden := range map[string][]string{
		"cmd/kubectl-nginx":  {"internal/objectcache", "pkg/certificates", "pkg/guard", "pkg/manager", "pkg/serving"},
		"internal/cached":    cluster,
		"internal/defaults":  cluster,
		"internal/health":    cluster,
		"internal/nginxconf": cluster,
		"internal/operand":   cluster,
		"examples":           {"api", "assets", "controllers", "internal"},
	} {
		out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", module+root).Output() //nolint:gosec // constants of this test
		if err != nil {
			t.Fatal(err)
		}
		for dependency := range strings.FieldsSeq(string(out)) {
			for _, name := range forbidden {
				if strings.HasPrefix(dependency+"/", module+name+"/") {
					t.Errorf("%s links %s", root, dependency)
				}
			}
		}
	}
}
