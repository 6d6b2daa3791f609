package rows

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// root is the directory of the module.
var root = func() string {
	out, err := filepath.Abs("../../..")
	if err != nil {
		panic(err)
	}
	return out
}()

func patches(t *testing.T) []string {
	t.Helper()
	found, err := filepath.Glob("*.patch")
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestPatchesApply verifies that each patch applies to the current code and changes it, and that
// README.md describes it.
func TestPatchesApply(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	found := patches(t)
	if len(found) == 0 {
		t.Fatal("there is no patch")
	}
	for _, patch := range found {
		if !strings.Contains(string(readme), "`"+patch+"`") {
			t.Errorf("README.md does not describe %s", patch)
		}
		if _, err := Overlay(root, patch, t.TempDir()); err != nil {
			t.Error(err)
		}
	}
}

// TestPatchThatDoesNotApply verifies that a patch for other code causes an error with the name of
// the patch.
func TestPatchThatDoesNotApply(t *testing.T) {
	patch := filepath.Join(t.TempDir(), "99-other.patch")
	text := "--- a/go.mod\n+++ b/go.mod\n@@ -1,3 +1,3 @@\n one\n-two\n+three\n four\n"
	if err := os.WriteFile(patch, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Overlay(root, patch, t.TempDir()); err == nil || !strings.Contains(err.Error(), "99-other.patch no longer applies") {
		t.Errorf("error %v", err)
	}
}
