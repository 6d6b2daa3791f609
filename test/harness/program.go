package harness

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Program returns the path of a program of this repository, which the Makefile builds at bin/NAME.
// If it is up to date, this takes a second.
func Program(name string) (string, error) {
	module, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return "", fmt.Errorf("failed to find the Makefile: %w", err)
	}
	root, target := strings.TrimSpace(string(module)), filepath.Join("bin", name)
	build := exec.Command("make", "-C", root, target)
	// The flags of an outer make, such as --jobs, are not for this one.
	build.Env = slices.DeleteFunc(os.Environ(), func(variable string) bool { return strings.HasPrefix(variable, "MAKE") })
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("failed to build %s: %w\n%s", target, err, out)
	}
	return filepath.Join(root, target), nil
}
