//go:build bench

package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/wellknown"
	"github.com/example/nginx-operator/test/harness"
)

const (
	// neighbourSamples is the number of measured changes while nothing else happens. In the other
	// phases, the duration of the phase determines the number.
	neighbourSamples = 50
	neighbourBar     = 2 * time.Second
	// fightEvery is the interval at which another client changes a child.
	fightEvery = 100 * time.Millisecond
	// fightTime is long enough to use up the comparisons of one child that the operator makes
	// without a delay.
	fightTime = 30 * time.Second
)

// TestNeighbours measures how long a change of one object takes to reach its Deployment. It
// measures while nothing else happens, while another namespace creates BENCH_NEIGHBOURS objects,
// and while a client in that namespace fights the operator over a child ten times per second.
func TestNeighbours(t *testing.T) {
	objects := intFromEnv(t, "BENCH_NEIGHBOURS", 2000)
	e := newEnvironment(t)
	e.startLeader(t)
	quiet, noisy := e.newNamespace(t, "quiet"), e.newNamespace(t, "noisy")
	object := newInstance(quiet, 0)
	must(t, e.admin.Create(t.Context(), object))
	e.waitForStatus(t, quiet, 1, time.Minute)
	e.waitForQuiet(t, time.Second, time.Minute)

	alone := e.timeChanges(t, object, func(done int, _ time.Duration) bool { return done < neighbourSamples })
	reportChanges(t, "alone", alone)

	var creation sync.WaitGroup
	made := make(chan struct{})
	creation.Go(func() {
		defer close(made)
		if err := harness.InParallel(t.Context(), 16, objects, func(ctx context.Context, i int) error {
			return e.admin.Create(ctx, newInstance(noisy, i))
		}); err != nil {
			t.Error(err)
			return
		}
		if _, err := e.watchStatus(t.Context(), noisy, objects, 20*time.Minute); err != nil {
			t.Error(err)
		}
	})
	during := e.timeChanges(t, object, func(int, time.Duration) bool {
		select {
		case <-made:
			return false
		default:
			return true
		}
	})
	creation.Wait()
	reportChanges(t, fmt.Sprintf("while-%d-objects-are-made", objects), during)

	ctx, stop := context.WithCancel(t.Context())
	var fight sync.WaitGroup
	fight.Go(func() { e.fight(ctx, noisy) })
	fought := e.timeChanges(t, object, func(_ int, since time.Duration) bool { return since < fightTime })
	stop()
	fight.Wait()
	reportChanges(t, "in-a-fight", fought)
}

// timeChanges changes an object repeatedly as long as more returns true. It returns how long each
// change took to reach the Deployment.
func (e *environment) timeChanges(
	t *testing.T, object *v1alpha2.NginxOperator, more func(done int, since time.Duration) bool,
) []time.Duration {
	t.Helper()
	var out []time.Duration
	for first := time.Now(); more(len(out), time.Since(first)); {
		value := time.Now().Format("150405.000000000")
		before := object.DeepCopy()
		object.Spec.ForceRedeploy = value
		began := time.Now()
		must(t, e.admin.Patch(t.Context(), object, client.MergeFrom(before)))
		waitFor(t, time.Minute, func() error {
			deployment := &appsv1.Deployment{}
			if err := e.admin.Get(t.Context(), client.ObjectKeyFromObject(object), deployment); err != nil {
				return err
			}
			if deployment.Spec.Template.Annotations[wellknown.AnnotationForceRedeploy] != value {
				return errors.New("the change has not reached the Deployment")
			}
			return nil
		})
		out = append(out, time.Since(began))
	}
	return out
}

// fight repeatedly overwrites a field of one child that the operator sets, until the context ends.
func (e *environment) fight(ctx context.Context, namespace string) {
	deployment := &appsv1.Deployment{}
	deployment.Namespace, deployment.Name = namespace, newInstance(namespace, 0).Name
	theirs := []byte(`{"metadata":{"labels":{"app.kubernetes.io/component":"theirs"}}}`)
	for ticker := time.NewTicker(fightEvery); ctx.Err() == nil; <-ticker.C {
		// Errors are ignored, because the next attempt follows.
		_ = e.admin.Patch(ctx, deployment, client.RawPatch("application/merge-patch+json", theirs))
	}
}

func reportChanges(t *testing.T, what string, took []time.Duration) {
	t.Helper()
	slices.Sort(took)
	p99 := percentile(took, 99)
	harness.Report("neighbour-change-p50-"+what, seconds(percentile(took, 50)), fmt.Sprintf("s (%d changes)", len(took)))
	harness.Report("neighbour-change-p99-"+what, seconds(p99), fmt.Sprintf("s (under %v)", neighbourBar.Seconds()))
	if p99 >= neighbourBar {
		t.Errorf("%s: a change took %s at the 99th percentile, at most %s is allowed", what, p99, neighbourBar)
	}
}
