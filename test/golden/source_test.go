package golden

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/example/nginx-operator/internal/fixture"
)

// TestMessagesOfSource compares the errors, the log messages, and the descriptions of flags in the
// source of the operator and the plugin with golden files, one for each group of packages. Most of
// them need a failure that no unit test produces. An ellipsis is a value. The packages whose
// messages an NginxOperator shows have golden files of their own, with a situation for each
// message.
func TestMessagesOfSource(t *testing.T) {
	t.Parallel()
	for file, packages := range map[string][]string{
		"messages-instances.txt": {
			"controllers/nginxoperator", "internal/endpointslice", "internal/fleet", "internal/live", "internal/operand", "internal/revision",
			"internal/rollout",
		},
		"messages-operator.txt": {".", "internal/objectcache", "internal/olm", "internal/options"},
		"messages-plugin.txt":   {"cmd/kubectl-nginx/migrate", "cmd/kubectl-nginx/preview"},
		"messages-pkg.txt": {
			"pkg/access", "pkg/apply", "pkg/certificates", "pkg/guard", "pkg/lists", "pkg/manager", "pkg/serving", "pkg/storagemigration",
		},
	} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			var text strings.Builder
			for _, dir := range packages {
				text.WriteString("## " + dir + "\n\n" + sourceOf(t, dir) + "\n")
			}
			fixture.Golden(t, file, strings.TrimSuffix(text.String(), "\n"))
		})
	}
}

// sourceOf returns the message literals of a package in the order of the source, one on a line.
func sourceOf(t *testing.T, dir string) string {
	t.Helper()
	literals, err := Literals(filepath.Join("..", "..", dir))
	if err != nil {
		t.Fatal(err)
	}
	if len(literals) == 0 {
		t.Errorf("%s has no message, remove it", dir)
	}

	slices.SortFunc(literals, func(a, b Literal) int {
		return cmp.Or(cmp.Compare(a.Position.Filename, b.Position.Filename), cmp.Compare(a.Position.Offset, b.Position.Offset))
	})

	var lines []string
	for _, literal := range literals {
		line := strings.ReplaceAll(strings.TrimSpace(literal.String()), "\n", "\n    ")
		if !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n") + "\n"
}
