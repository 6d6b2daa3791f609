//go:build rows

package rows

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
)

// build compiles the simulation with an overlay, and returns the path of the program and the output
// of the compiler.
func build(root, scratch, overlay string) (binary string, output []byte, err error) {
	binary = filepath.Join(scratch, "simulation.test")
	command := exec.Command("go", "test", "-c", "-vet=off", "-overlay="+overlay, "-o="+binary, "./test/simulation")
	command.Dir = root
	output, err = command.CombinedOutput()
	return binary, output, err
}

var failedSeed = regexp.MustCompile(`seed \d+: [^\n]*`)

// TestSeedsFindEachRow verifies that the fixed seeds of the gate find each restored defect. It
// takes about half a minute per patch: make simulate-rows.
func TestSeedsFindEachRow(t *testing.T) {
	forEachPatch(t, func(t *testing.T, _, root, scratch, overlay string) {
		binary, said, err := build(root, scratch, overlay)
		if err != nil {
			t.Fatalf("failed to build: %v\n%s", err, said)
		}
		seeds := exec.Command(binary, "-test.run=^TestSeeds$", "-test.timeout=10m")
		seeds.Dir = filepath.Join(root, "test", "simulation")
		// A run that was killed, or that panicked, fails without a finding.
		output, err := seeds.CombinedOutput()
		finding := failedSeed.Find(output)
		if err == nil || finding == nil {
			t.Fatalf("no seed finds it: %v\n%s", err, output)
		}
		t.Logf("the seeds find it: %s", finding)
	})
}
