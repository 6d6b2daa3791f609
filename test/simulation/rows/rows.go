// Package rows applies patches that restore defects of earlier releases in the operator, so that a
// test can verify that the simulation finds them. Each patch in its directory is one defect.
// README.md describes them.
package rows

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// patchedFile matches the line of a unified diff with the name of the changed file.
var patchedFile = regexp.MustCompile(`(?m)^\+\+\+ b/(\S+)`)

// Overlay applies a patch to copies of the files that it changes, and returns the path of a JSON
// file for go build -overlay. root is the directory of the module. All output goes to scratch,
// which must be outside of a git repository.
func Overlay(root, patch, scratch string) (string, error) {
	text, err := os.ReadFile(patch) //nolint:gosec // the path is the caller's
	if err != nil {
		return "", fmt.Errorf("failed to read the patch: %w", err)
	}
	replace := map[string]string{}
	for _, found := range patchedFile.FindAllSubmatch(text, -1) {
		name := string(found[1])
		source, err := os.ReadFile(filepath.Join(root, name)) //nolint:gosec // the patch is part of the repository
		if err != nil {
			return "", fmt.Errorf("%s changes a file that cannot be read: %w", filepath.Base(patch), err)
		}
		copied := filepath.Join(scratch, name)
		if err := os.MkdirAll(filepath.Dir(copied), 0o750); err != nil {
			return "", fmt.Errorf("failed to create a directory: %w", err)
		}
		if err := os.WriteFile(copied, source, 0o600); err != nil {
			return "", fmt.Errorf("failed to copy %s: %w", name, err)
		}
		replace[filepath.Join(root, name)] = copied
	}
	if len(replace) == 0 {
		return "", fmt.Errorf("%s changes no file", filepath.Base(patch))
	}
	if err := apply(text, scratch); err != nil {
		return "", fmt.Errorf("%s no longer applies, so write it again for the present code: %w", filepath.Base(patch), err)
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", fmt.Errorf("failed to encode the overlay: %w", err)
	}
	path := filepath.Join(scratch, "overlay.json")
	if err := os.WriteFile(path, overlay, 0o600); err != nil {
		return "", fmt.Errorf("failed to write the overlay: %w", err)
	}
	return path, nil
}

// apply applies a unified diff in a directory. One line of context must match before and after each
// change.
func apply(patch []byte, directory string) error {
	command := exec.Command("git", "apply", "-C1", "--verbose", "-")
	command.Dir, command.Stdin = directory, bytes.NewReader(patch)
	// Otherwise git would look for a repository above the directory.
	command.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(directory))
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("git apply: %w: %s", err, strings.TrimSpace(string(output)))
	}
	return nil
}
