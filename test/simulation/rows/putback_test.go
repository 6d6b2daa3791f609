//go:build rows

package rows

import (
	"errors"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
)

var failedSeed = regexp.MustCompile(`seed \d+: [^\n]*`)

// TestSeedsFindEachRow verifies that the fixed seeds of the gate find each restored defect. It takes
// about half a minute per patch: make simulate-rows.
func TestSeedsFindEachRow(t *testing.T) {
	forEachPatch(t, func(t *testing.T, _, root, scratch, overlay string) {
		binary := filepath.Join(scratch, "simulation.test")
		build := exec.Command("go", "test", "-c", "-vet=off", "-overlay="+overlay, "-o="+binary, "./test/simulation")
		build.Dir = root
		if output, err := build.CombinedOutput(); err != nil {
			t.Fatalf("failed to build: %v\n%s", err, output)
		}
		seeds := exec.Command(binary, "-test.run=^TestSeeds$", "-test.timeout=10m")
		seeds.Dir = filepath.Join(root, "test", "simulation")
		output, err := seeds.CombinedOutput()
		switch exit := (*exec.ExitError)(nil); {
		case err == nil:
			t.Errorf("no seed finds it:\n%s", output)
		case !errors.As(err, &exit):
			t.Fatal(err)
		default:
			t.Logf("the seeds find it: %s", failedSeed.Find(output))
		}
	})
}
