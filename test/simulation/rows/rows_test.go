// Package rows applies patches that restore defects of earlier releases in the operator, and
// verifies that the simulation finds them. Each patch in its directory is one defect. README.md
// describes them.
package rows

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// patchedFile matches the line of a unified diff with the name of the changed file.
var patchedFile = regexp.MustCompile(`(?m)^\+\+\+ b/(\S+)`)

// forEachPatch runs a test for each patch. scratch has copies of the files that the patch changes,
// and overlay is the path of a JSON file in it for go build -overlay.
func forEachPatch(t *testing.T, test func(t *testing.T, patch, root, scratch, overlay string)) {
	t.Helper()
	patches, err := filepath.Glob("*.patch")
	if err != nil || len(patches) == 0 {
		t.Fatal("there is no patch", err)
	}
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, patch := range patches {
		t.Run(strings.TrimSuffix(patch, ".patch"), func(t *testing.T) {
			scratch := t.TempDir()
			test(t, patch, root, scratch, apply(t, patch, root, scratch))
		})
	}
}

// apply applies a patch in scratch, and returns the overlay. One line of context must match before
// and after each change.
func apply(t *testing.T, patch, root, scratch string) (overlay string) {
	t.Helper()
	text, err := os.ReadFile(patch)
	if err != nil {
		t.Fatal(err)
	}
	replace := map[string]string{}
	for _, found := range patchedFile.FindAllSubmatch(text, -1) {
		source, copied := filepath.Join(root, string(found[1])), filepath.Join(scratch, string(found[1]))
		content, err := os.ReadFile(source)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(os.MkdirAll(filepath.Dir(copied), 0o750), os.WriteFile(copied, content, 0o600)); err != nil {
			t.Fatal(err)
		}
		replace[source] = copied
	}
	command := exec.Command("git", "apply", "-C1", "--verbose", "-")
	command.Dir, command.Stdin = scratch, bytes.NewReader(text)
	// Otherwise git would look for a repository above the directory.
	command.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(scratch))
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%s no longer applies, so write it again for the present code: %v\n%s", patch, err, output)
	}
	return writeOverlay(t, scratch, replace)
}

// writeOverlay writes the overlay with which go build reads other files, and returns its path.
func writeOverlay(t *testing.T, scratch string, replace map[string]string) (overlay string) {
	t.Helper()
	encoded, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	overlay = filepath.Join(scratch, "overlay.json")
	if err := os.WriteFile(overlay, encoded, 0o600); err != nil {
		t.Fatal(err)
	}
	return overlay
}

// TestPatchesApply verifies that each patch applies to the current code, and that README.md
// describes it.
func TestPatchesApply(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	forEachPatch(t, func(t *testing.T, patch, _, _, _ string) {
		if !bytes.Contains(readme, []byte("`"+patch+"`")) {
			t.Errorf("README.md does not describe %s", patch)
		}
	})
}
