//go:build bench

package bench

import (
	"context"
	"errors"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/test/harness"
)

const (
	steadyObjects = 1000
	steadyTime    = 10 * time.Second
)

// TestSteadyState counts the writes while nothing happens, and after a restart, when the operator
// compares every child again.
func TestSteadyState(t *testing.T) {
	e := newEnvironment(t)
	operator := e.startLeader(t)
	namespace := e.newNamespace(t, "steady")
	inParallel(t, concurrency, steadyObjects, func(ctx context.Context, i int) error {
		return e.admin.Create(ctx, newInstance(namespace, i))
	})
	e.waitForStatus(t, namespace, steadyObjects, 3*time.Minute)
	e.rollOutAll(t, namespace)
	e.waitForReady(t, namespace, steadyObjects)
	e.waitForQuiet(t, 6*time.Second, time.Minute)

	before := e.writes(t)
	time.Sleep(steadyTime) // the operator must write nothing during this time
	written := e.writes(t).since(before)
	harness.Report("steady-state-writes-in-10s", float64(written.total()), "requests (0)")
	if written.total() != 0 {
		t.Errorf("written while nothing happened: %s", written)
	}

	operator.Stop()
	before = e.writes(t)
	e.startLeader(t)
	e.waitForLooks(t, 5*time.Minute)
	written = e.writes(t).since(before)
	if written[leaderEvent] == 1 {
		delete(written, leaderEvent)
	}
	harness.Report("restart-writes-with-1000-objects", float64(written.total()), "requests (0)")
	if written.total() != 0 {
		t.Errorf("written after a restart: %s", written)
	}
}

func (e *environment) rollOutAll(t *testing.T, namespace string) {
	t.Helper()
	deployments := &appsv1.DeploymentList{}
	must(t, e.admin.List(t.Context(), deployments, client.InNamespace(namespace)))
	inParallel(t, concurrency, len(deployments.Items), func(ctx context.Context, i int) error {
		return e.rollOut(ctx, &deployments.Items[i])
	})
}

func (e *environment) waitForReady(t *testing.T, namespace string, n int) {
	t.Helper()
	waitFor(t, 10*time.Minute, func() error {
		if e.ready(t, namespace) < n {
			time.Sleep(500 * time.Millisecond)
			return errors.New("not all objects are Ready")
		}
		return nil
	})
}

// leaderRounds is the number of clean stops of the leader.
const leaderRounds = 3

// TestLeaderChange measures the time from the end of the leader until the other replica holds the
// Lease, and until that replica has created the children of a new object.
func TestLeaderChange(t *testing.T) {
	e := newEnvironment(t)
	namespace := e.newNamespace(t, "leaders")
	first, second := e.startLeader(t), e.startOperator(t)
	change := func(i int, end func(*harness.Manager)) (lease, work time.Duration) {
		holder, object := e.leader(t), newInstance(namespace, i)
		began := time.Now()
		go end(first)
		must(t, e.admin.Create(t.Context(), object))
		waitFor(t, time.Minute, func() error {
			if now := e.leader(t); now == holder || now == "" {
				return errors.New("nobody else leads")
			}
			return nil
		})
		lease = time.Since(began)
		waitFor(t, time.Minute, func() error {
			return e.admin.Get(t.Context(), client.ObjectKeyFromObject(object), &appsv1.Deployment{})
		})
		work = time.Since(began)
		<-first.Done()
		first, second = second, e.startOperator(t)
		time.Sleep(2 * time.Second) // nothing shows when the new standby has observed the leader
		return lease, work
	}
	var worst, worstWork time.Duration
	for i := range leaderRounds {
		lease, work := change(i, (*harness.Manager).Stop)
		worst, worstWork = max(worst, lease), max(worstWork, work)
	}
	harness.Report("leader-change-clean-stop", seconds(worst), "s (under 2, the worst of 3)")
	harness.Report("leader-change-clean-stop-until-work", seconds(worstWork), "s")
	if worst >= 2*time.Second {
		t.Errorf("a clean change of leader took %s", worst)
	}
	lease, work := change(leaderRounds, (*harness.Manager).Kill)
	harness.Report("leader-change-kill", seconds(lease), "s (under 20)")
	harness.Report("leader-change-kill-until-work", seconds(work), "s")
	if lease >= 20*time.Second {
		t.Errorf("the change of leader after a kill took %s", lease)
	}
	second.Stop()
}
