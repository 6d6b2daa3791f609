package main

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// TestDependencies verifies that the plugin, and the packages that only compute values, do not link
// the manager or its parts.
func TestDependencies(t *testing.T) {
	const module = "github.com/example/nginx-operator/"
	manager := []string{"access", "certificates", "guard", "lists", "olm", "operatormanager", "options", "review", "serving"}
	cluster := slices.Concat(manager, []string{"fleet", "inputs", "optional", "record", "reference", "rollout", "snapshot"})
	for root, forbidden := range map[string][]string{
		"cmd/kubectl-nginx":  {"certificates", "guard", "operatormanager", "serving"},
		"internal/cached":    cluster,
		"internal/defaults":  cluster,
		"internal/health":    cluster,
		"internal/nginxconf": cluster,
		"internal/operand":   cluster,
	} {
		t.Run(root, func(t *testing.T) {
			out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", module+root).Output() //nolint:gosec // constants of this test
			if err != nil {
				t.Fatal(err)
			}
			linked := strings.Fields(string(out))
			for _, name := range forbidden {
				for _, dependency := range linked {
					if dependency == module+"internal/"+name {
						t.Errorf("links internal/%s", name)
					}
				}
			}
		})
	}
}
