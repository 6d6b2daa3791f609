package fleet

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// flaky is the cache, the OLM condition, and the metrics of a Reporter. The first listFailures
// lists and the first conditionFailures writes of the condition fail.
type flaky struct {
	objects                         int
	listFailures, conditionFailures int

	mu     sync.Mutex
	told   []string
	counts [4]int
}

// reported returns the counts, and all conditions that were reported to OLM.
func (f *flaky) reported() (counts [4]int, told []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.counts, slices.Clone(f.told)
}

func (f *flaky) names(context.Context) ([]types.NamespacedName, error) {
	if f.listFailures--; f.listFailures >= 0 {
		return nil, errors.New("not yet")
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []types.NamespacedName
	for i := range f.objects {
		out = append(out, objectOf(i))
	}
	return out, nil
}

// keep sets the number of the objects of later lists.
func (f *flaky) keep(objects int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.objects = objects
}

func (f *flaky) set(_ context.Context, status metav1.ConditionStatus, reason, _ string) error {
	if f.conditionFailures--; f.conditionFailures >= 0 {
		return errors.New("conflict")
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.told = append(f.told, string(status)+" "+reason)
	return nil
}

func (f *flaky) instances(waiting, rolling, overdue, failed int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.counts = [4]int{waiting, rolling, overdue, failed}
}

// report starts a Reporter, which ends with the test.
func (f *flaky) report(t *testing.T, g *Gate) {
	t.Helper()
	reporter := &Reporter{Gate: g, Names: f.names, SetCondition: f.set, Instances: f.instances, Log: logr.Discard()}
	go func() {
		if err := reporter.Start(t.Context()); err != nil {
			t.Error(err)
		}
	}()
}

// TestReporter verifies that each step is reported to OLM once, and none before all objects were
// seen. Failed requests are retried.
func TestReporter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &flaky{objects: 3, listFailures: 2, conditionFailures: 2}
		g := New(Policy{MaxUnavailable: intstr.FromInt32(1), FailureThreshold: DefaultFailureThreshold})
		f.report(t, g)
		expect := func(counts [4]int, told ...string) {
			t.Helper()
			synctest.Wait()
			if gotCounts, gotTold := f.reported(); gotCounts != counts || !slices.Equal(gotTold, told) {
				t.Errorf("counts %v, want %v; OLM was told %q, want %q", gotCounts, counts, gotTold, told)
			}
		}
		const rolling, stopped, idle = "False " + ReasonRolling, "False " + ReasonStopped, "True " + ReasonIdle

		g.Report(objectOf(0), Outside, false)
		time.Sleep(3 * reportEvery)
		g.Report(objectOf(1), Outside, false)
		expect([4]int{})
		g.Ask(objectOf(2), Waiting)
		time.Sleep(3 * reportEvery)
		expect([4]int{0, 1, 0, 0}, rolling)
		g.Report(objectOf(2), Failed, false)
		expect([4]int{0, 0, 0, 1}, rolling, stopped)
		g.Report(objectOf(2), Failed, false)
		expect([4]int{0, 0, 0, 1}, rolling, stopped)
		g.Report(objectOf(2), Rolling, false)
		expect([4]int{0, 1, 0, 0}, rolling, stopped, rolling)
		g.Report(objectOf(2), Outside, false)
		expect([4]int{}, rolling, stopped, rolling, idle)
	})
}

// TestDeletedSinceList verifies that an object that is deleted between the list and the start of
// the watch does not block the rollout. No reconcile of this object follows. An object that exists
// is waited for.
func TestDeletedSinceList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, f := New(tenPercent), &flaky{objects: 3}
		f.report(t, g)
		synctest.Wait()
		g.Ask(objectOf(1), Waiting)
		f.keep(2) // web-2 is gone
		time.Sleep(3 * reportEvery)
		if g.Ask(objectOf(1), Waiting) {
			t.Errorf("an instance starts before web-0 was seen: %+v", stateNow(g))
		}
		g.Report(objectOf(0), Outside, false)
		if !g.Ask(objectOf(1), Waiting) {
			t.Errorf("no instance starts: %+v", stateNow(g))
		}
		if state := stateNow(g); state.All != 2 || g.waits() {
			t.Errorf("state %+v", state)
		}
	})
}

// TestReporterBoundsTenants verifies that tenants with slow or failing instances can delay the
// rollout only by minutes, and OLM only by an hour.
func TestReporterBoundsTenants(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mallory, eve, shop := many("mallory", 2), many("eve", 1), many("shop", 2)
		f := &flaky{}
		g, queue := newGate(t, mallory, eve, shop)
		f.report(t, g)
		for _, object := range shop {
			g.Report(object, Outside, false)
		}
		for _, object := range append(mallory, eve...) {
			g.Report(object, Waiting, false)
		}
		slow := []types.NamespacedName{next(t, queue), next(t, queue)}
		for _, object := range shop {
			g.Report(object, Waiting, false)
		}
		began := time.Now()
		time.Sleep(SlotTime - 1)
		synctest.Wait()
		if counts, _ := f.reported(); counts != [4]int{3, 2, 0, 0} || queue.Len() > 0 {
			t.Fatalf("%v, %d start", counts, queue.Len())
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		rolled := rollAll(t, g, queue, func(object types.NamespacedName) bool { return object.Namespace == "shop" })
		synctest.Wait()
		if counts, _ := f.reported(); counts != [4]int{1, 0, 2, 0} || rolled["shop"] != len(shop) || time.Since(began) != SlotTime {
			t.Errorf("rolled %v after %s, %v", rolled, time.Since(began), counts)
		}
		for _, object := range slow {
			g.Report(object, Rolling, false)
		}
		time.Sleep(HoldTime - 1)
		synctest.Wait()
		// The scheduler determines how many steps of the rollout the reporter sees.
		if _, told := f.reported(); !slices.Equal(slices.Compact(told), []string{"False " + ReasonRolling}) {
			t.Errorf("OLM was told %q", told)
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		if _, told := f.reported(); told[len(told)-1] != "True "+ReasonReleased {
			t.Errorf("OLM was told %q", told)
		}
	})
}
