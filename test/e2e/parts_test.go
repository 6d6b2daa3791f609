package e2e

import (
	"cmp"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/sets"
)

// parts maps each part to its tests. E2E_PART selects one or more parts, separated by blanks. The
// default is gate, which `make check` runs. unit needs no cluster. `make nightly` runs the other
// parts.
var parts = map[string][]string{
	"unit": {"TestParts", "TestReleaseURLs"},
	"gate": {"TestBundle", "TestDocumentsBesideImages", "TestHelm", "TestReadme", "TestRelease", "TestSubscription", "TestUpgrade"},
	"upgrades": {
		"TestBundleUpgrade", "TestDeadOperator", "TestDefault", "TestHelmVersions", "TestUpgradeAutomatically", "TestUpgradeFromSkipped",
		"TestUpgradeGraph",
	},
	"subscription":   {"TestLongSubscription", "TestMirror", "TestPolledCatalog", "TestWatchNamespaces"},
	"journeys":       {"TestCompleteRelease", "TestContributeJourney", "TestJourneys", "TestRecipes"},
	"olm-v1":         {"TestOLMv1"},
	"oldest-cluster": {"TestSubscription"},
	"examples":       {"TestExamples"},
}

// selectParts returns the parts in E2E_PART. It limits the run, or the list of -test.list, to their
// tests, unless the flag -test.run selects tests.
func selectParts() ([]string, error) {
	selected := strings.Fields(cmp.Or(os.Getenv("E2E_PART"), "gate"))
	var tests []string
	for _, part := range selected {
		if len(parts[part]) == 0 {
			return nil, fmt.Errorf("E2E_PART names the part %q, want some of %q", part, slices.Sorted(maps.Keys(parts)))
		}
		tests = append(tests, parts[part]...)
	}
	given := func(name string) bool { return flag.Lookup(name).Value.String() != "" }
	limited := "test.run"
	if given("test.list") {
		limited = "test.list"
	} else if given(limited) {
		return selected, nil
	}
	return selected, flag.Set(limited, "^("+strings.Join(tests, "|")+")$")
}

// TestParts requires that each test of this package is in a part, and that each listed test exists.
func TestParts(t *testing.T) {
	files, err := filepath.Glob("*_test.go")
	must(t, err)
	declared, listed := sets.New[string](), sets.New[string]()
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		must(t, err)
		for _, declaration := range file.Decls {
			function, ok := declaration.(*ast.FuncDecl)
			if ok && function.Recv == nil && strings.HasPrefix(function.Name.Name, "Test") && function.Name.Name != "TestMain" {
				declared.Insert(function.Name.Name)
			}
		}
	}
	for _, tests := range parts {
		listed.Insert(tests...)
	}
	if missing, unknown := declared.Difference(listed), listed.Difference(declared); len(missing)+len(unknown) > 0 {
		t.Errorf("the parts do not have %v, and these tests do not exist: %v", sets.List(missing), sets.List(unknown))
	}
}
