package command

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericclioptions"
)

// TestPermissionsOnThePage verifies that the page of the plugin lists the permissions of each
// command.
func TestPermissionsOnThePage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/guide/kubectl-nginx.md")
	if err != nil {
		t.Fatal(err)
	}

	var table strings.Builder
	table.WriteString("| command | verbs | resources | needed | optional, for |\n|---|---|---|---|---|\n")
	permissions := Permissions()
	for _, cmd := range newRoot(&cli{kube: genericclioptions.NewConfigFlags(true)}).Commands() {
		for _, permission := range permissions[cmd.Name()] {
			needed := permission.For
			if needed == "" && permission.Shows == "" {
				needed = "always"
			}
			fmt.Fprintf(&table, "| `%s` | %s | %s | %s | %s |\n", cmd.Name(), strings.ReplaceAll(permission.Verb, ",", ", "),
				strings.Join(permission.Resources, ", "), needed, permission.Shows)
		}
	}
	if !strings.Contains(string(page), "\n\n"+table.String()+"\n") {
		t.Errorf("docs/guide/kubectl-nginx.md does not have this table:\n%s", table.String())
	}
}
