//go:build rows

package rows

import (
	"errors"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	failedSeed = regexp.MustCompile(`seed \d+: [^\n]*`)
	failedTest = regexp.MustCompile(`(?m)^--- FAIL: (TestRow\w+)`)
)

// TestSeedsFindEachRow verifies that the fixed seeds of the gate find each restored defect. The log
// also lists the scripted scenarios that find it. It takes about half a minute per patch: make
// simulate-rows.
func TestSeedsFindEachRow(t *testing.T) {
	for _, patch := range patches(t) {
		t.Run(strings.TrimSuffix(patch, ".patch"), func(t *testing.T) {
			scratch := t.TempDir()
			overlay, err := Overlay(root, patch, scratch)
			if err != nil {
				t.Fatal(err)
			}
			binary := filepath.Join(scratch, "simulation.test")
			build := exec.Command("go", "test", "-c", "-vet=off", "-overlay="+overlay, "-o="+binary, "./test/simulation")
			build.Dir = root
			if output, err := build.CombinedOutput(); err != nil {
				t.Fatalf("failed to build: %v\n%s", err, output)
			}

			output, failed := run(t, binary, "^TestSeeds$")
			if failed {
				t.Logf("the seeds find it: %s", failedSeed.FindString(output))
			} else {
				t.Errorf("no seed finds it:\n%s", output)
			}

			output, failed = run(t, binary, "^TestRow")
			var names []string
			for _, found := range failedTest.FindAllStringSubmatch(output, -1) {
				names = append(names, found[1])
			}
			if failed {
				t.Logf("scenarios that find it: %s", strings.Join(names, ", "))
			} else {
				t.Log("no scenario finds it")
			}
		})
	}
}

// run runs the tests of a binary, and reports whether they fail.
func run(t *testing.T, binary, tests string) (output string, failed bool) {
	t.Helper()
	command := exec.Command(binary, "-test.run="+tests, "-test.timeout=10m")
	command.Dir = filepath.Join(root, "test", "simulation")
	out, err := command.CombinedOutput()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return string(out), err != nil
}
