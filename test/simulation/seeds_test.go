package simulation

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/example/nginx-operator/test/simulation/world"
)

var (
	seedFlag     = flag.Uint64("seed", 0, "the one seed that TestSeeds runs and, if it fails, shrinks")
	durationFlag = flag.Duration("simulate", 0, "how long TestSeeds runs new seeds, in place of the fixed number")
)

const (
	// fixedSeeds is the number of seeds that the gate runs. stepsOfSeed is the number of steps of a
	// seed.
	fixedSeeds  = 30
	stepsOfSeed = 20
)

// TestSeeds runs random scenarios. To replay and shrink one: go test ./test/simulation -run
// TestSeeds -seed N -v
func TestSeeds(t *testing.T) {
	if *seedFlag != 0 {
		if found := shrink(t, *seedFlag); found != "" {
			t.Error(found)
		}
		return
	}
	began, count := time.Now(), uint64(0)
	first := uint64(1)
	if *durationFlag > 0 {
		first = uint64(began.Unix()) //nolint:gosec // it is positive
	}
	for seed := first; ; seed++ {
		if *durationFlag == 0 && count >= fixedSeeds || *durationFlag > 0 && time.Since(began) > *durationFlag {
			break
		}
		count++
		if found := runSeed(t, seed, allSteps(), nil); len(found) > 0 {
			t.Errorf("seed %d: %s\nreplay and shrink: go test ./test/simulation -run 'TestSeeds$' -seed %d -v",
				seed, strings.Join(found, "\n"), seed)
			if *durationFlag == 0 {
				break
			}
		}
	}
	t.Logf("%d seeds from %d on, %.2f seeds per second", count, first, float64(count)/time.Since(began).Seconds())
}

// TestSeedsRepeat verifies that a seed determines a run completely. Two runs of a seed have the
// same requests, events, and turns at the same times.
func TestSeedsRepeat(t *testing.T) {
	for seed := uint64(1); seed <= 3; seed++ {
		var runs [2][]string
		for i := range runs {
			runSeed(t, seed, allSteps(), func(w *world.World) {
				w.TraceAll = true
				traceTo(w, func(line string) { runs[i] = append(runs[i], line) })
			})
		}
		for i, line := range runs[0] {
			if i >= len(runs[1]) || line != runs[1][i] {
				t.Fatalf("seed %d: line %d of the trace differs after\n%s\nnow:\n%s\n%s", seed, i,
					strings.Join(runs[0][max(0, i-20):i], "\n"), line, strings.Join(runs[1][i:min(i+1, len(runs[1]))], ""))
			}
		}
		if len(runs[0]) != len(runs[1]) || len(runs[0]) == 0 {
			t.Errorf("seed %d: traces of %d and %d lines", seed, len(runs[0]), len(runs[1]))
		}
	}
}

// allSteps returns the numbers of the steps of a seed.
func allSteps() []uint64 {
	var out []uint64
	for step := range uint64(stepsOfSeed) {
		out = append(out, step+1)
	}
	return out
}

// chanceOf returns the random source of a step, or of the whole seed if step is 0. It depends only
// on these two numbers, so removing a step does not change the other steps.
func chanceOf(seed, step uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, step)) } //nolint:gosec // a simulation

// actionsOf returns the actions of a seed. Each seed has half of all actions, so that rare
// combinations occur.
func actionsOf(chance *rand.Rand) []world.Action {
	all := world.Actions()
	chance.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all[:len(all)/2]
}

// traceTo writes the trace of a world, with the virtual time of each line.
func traceTo(w *world.World, trace func(string)) {
	w.Trace = func(line string) { trace(time.Now().Format("15:04:05.000 ") + line) }
}

// runSeed runs these steps of a seed, and returns the violated invariants. prepare, if set, is
// called before the first step.
func runSeed(t *testing.T, seed uint64, steps []uint64, prepare func(*world.World)) (found []string) {
	t.Helper()
	synctest.Test(t, func(*testing.T) {
		w := world.New(release, seed)
		if prepare != nil {
			prepare(w)
		}
		defer func() { w.Stop() }()
		o := observe(w)
		chance := chanceOf(seed, 0)
		w.Store.Skew = time.Duration(chance.IntN(3)-1) * 7 * time.Minute
		actions := actionsOf(chance)
		w.Furnish(chance)
		w.Start(0)
		w.Run(time.Minute)
		for _, step := range steps {
			w.Seed(seed, step)
			chance := chanceOf(seed, step)
			if chance.IntN(3) == 0 {
				w.Heal()
			}
			action := actions[chance.IntN(len(actions))]
			w.Note("step %d: %s", step, action.Name)
			action.Do(w, chance)
			w.Run(time.Duration(chance.IntN(60_000)) * time.Millisecond)
			if len(o.found) > 0 {
				break
			}
		}
		found = o.finish()
	})
	return found
}

// shrink removes steps as long as the seed fails. It returns the failure of the remaining steps, or
// "" if the seed passes.
func shrink(t *testing.T, seed uint64) string {
	t.Helper()
	steps := allSteps()
	found := runSeed(t, seed, steps, nil)
	if len(found) == 0 {
		return ""
	}
	for size := len(steps) / 2; size > 0; size /= 2 {
		for from := 0; from < len(steps); {
			fewer := slices.Delete(slices.Clone(steps), from, min(from+size, len(steps)))
			if failed := runSeed(t, seed, fewer, nil); len(failed) > 0 {
				steps, found = fewer, failed
			} else {
				from += size
			}
		}
	}
	runSeed(t, seed, steps, func(w *world.World) { traceTo(w, func(line string) { t.Log(line) }) })
	return fmt.Sprintf("seed %d fails with the steps %v: %s", seed, steps, strings.Join(found, "\n"))
}
