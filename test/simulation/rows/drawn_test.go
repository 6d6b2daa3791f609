//go:build rows

package rows

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// core has the packages whose defects the simulation has to find, by their part of the core. Each
// part has the same number of drawn mutants.
var core = [][]string{
	{"internal/rollout"},
	{"pkg/apply"},
	{"internal/status"},
	{"internal/health"},
	{"internal/operand", "internal/endpointslice"},
	{"internal/fleet"},
	{"internal/resolve", "internal/revision", "internal/change"},
	{"internal/live", "controllers/nginxoperator"},
}

var seedFlag = flag.Uint64("seed", 1, "the seed that draws the mutants")

const (
	// drawnOfPart is the number of drawn mutants of each part of the core.
	drawnOfPart = 3
	// maxRun is the limit for the time in which a seed must find a defect.
	maxRun = time.Minute
	// mostSurvivors is the limit of drawn mutants that no seed finds.
	mostSurvivors = 4
)

// TestSeedsFindDrawnMutants draws small defects of the core, and verifies that an invariant finds
// almost all of them on the fixed seeds of the gate. A mutant that does not compile, or panics, is
// replaced by the next one.
func TestSeedsFindDrawnMutants(t *testing.T) {
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	drawn, err := draw(root, *seedFlag, coverage(t, root))
	if err != nil {
		t.Fatal(err)
	}
	var survivors []string
	for part, candidates := range drawn {
		for count := 0; count < drawnOfPart; candidates = candidates[1:] {
			if len(candidates) == 0 {
				t.Fatalf("%v has too few mutants", core[part])
			}
			mutated := candidates[0]
			began := time.Now()
			switch found, valid := try(t, root, mutated); {
			case !valid:
				continue
			case found == "":
				survivors = append(survivors, mutated.String())
				t.Logf("survives: %s", mutated)
			default:
				t.Logf("found in %s: %s: %s", time.Since(began).Round(time.Second), mutated, found)
			}
			count++
		}
	}
	if len(survivors) > mostSurvivors {
		t.Errorf("no seed finds %d mutants:\n%s", len(survivors), strings.Join(survivors, "\n"))
	}
}

// draw returns the mutants of each part of the core in an order that the seed determines. Only
// lines that a run executes have mutants.
func draw(root string, seed uint64, executed covered) ([][]mutant, error) {
	out := make([][]mutant, len(core))
	for i, directories := range core {
		for _, directory := range directories {
			files, err := filepath.Glob(filepath.Join(root, directory, "*.go"))
			if err != nil {
				return nil, err
			}
			for _, path := range files {
				if strings.HasSuffix(path, "_test.go") {
					continue
				}
				source, err := os.ReadFile(path)
				if err != nil {
					return nil, err
				}
				file := filepath.ToSlash(filepath.Join(directory, filepath.Base(path)))
				found, err := mutantsOf(file, source)
				if err != nil {
					return nil, err
				}
				out[i] = append(out[i], slices.DeleteFunc(found, func(one mutant) bool { return !executed[file][one.line] })...)
			}
		}
		random := rand.New(rand.NewPCG(seed, uint64(i))) //nolint:gosec // a test, to be repeated
		random.Shuffle(len(out[i]), func(a, b int) { out[i][a], out[i][b] = out[i][b], out[i][a] })
	}
	return out, nil
}

// coverage returns the lines that the fixed seeds execute.
func coverage(t *testing.T, root string) covered {
	t.Helper()
	profile := filepath.Join(t.TempDir(), "profile")
	const module = "github.com/example/nginx-operator"
	var packages []string
	for _, directories := range core {
		for _, directory := range directories {
			packages = append(packages, module+"/"+directory)
		}
	}
	command := exec.Command("go", "test", "-vet=off", "-coverprofile="+profile, "-coverpkg="+strings.Join(packages, ","),
		"-run=^TestSeeds$", "./test/simulation")
	command.Dir = root
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	raw, err := os.ReadFile(profile)
	if err != nil {
		t.Fatal(err)
	}
	out, err := parseCoverage(raw, module)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// try runs the seeds on a mutant. It returns the violated invariant, or "", and whether the mutant
// compiles and does not panic.
func try(t *testing.T, root string, mutated mutant) (found string, valid bool) {
	t.Helper()
	scratch := t.TempDir()
	path := filepath.Join(root, filepath.FromSlash(mutated.file))
	source, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	changed := filepath.Join(scratch, "changed.go")
	if err := os.WriteFile(changed, mutated.apply(source), 0o600); err != nil {
		t.Fatal(err)
	}
	binary, _, err := build(root, scratch, writeOverlay(t, scratch, map[string]string{path: changed}))
	if err != nil {
		return "", false
	}
	ctx, cancel := context.WithTimeout(t.Context(), maxRun)
	defer cancel()
	seeds := exec.CommandContext(ctx, binary, "-test.run=^TestSeeds$")
	seeds.Dir = filepath.Join(root, "test", "simulation")
	output, err := seeds.CombinedOutput()
	switch {
	case bytes.Contains(output, []byte("panic: ")):
		return "", false
	case err == nil, ctx.Err() != nil:
		return "", true
	}
	return fmt.Sprintf("%.200s", failedSeed.Find(output)), true
}
