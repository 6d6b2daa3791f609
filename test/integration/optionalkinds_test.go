package integration

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/example/nginx-operator/internal/objectcache"
	"github.com/example/nginx-operator/internal/scheme"
	"github.com/example/nginx-operator/pkg/manager"
	"github.com/example/nginx-operator/test/harness"
)

// candidate is a manager with the operator's runnable for optional kinds, with the operator's
// permissions and a Lease of its own.
type candidate struct {
	// elected gets the kinds that are missing at the election.
	elected chan map[string]string
	// ended gets the result of the manager.
	ended chan error
}

// newCandidate starts a manager, whose leader ends soon after a change of the served kinds.
func newCandidate(t *testing.T, namespace string) candidate {
	t.Helper()
	mgr := must1(ctrl.NewManager(suite.operatorConfig, ctrl.Options{
		Scheme: scheme.New(), Logger: logr.Discard(), Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
		LeaderElection: true, LeaderElectionID: "candidate", LeaderElectionNamespace: namespace, LeaderElectionConfig: suite.config,
		LeaderElectionReleaseOnCancel: true, RetryPeriod: ptr.To(200 * time.Millisecond),
	}))(t)
	out := candidate{make(chan map[string]string, 1), make(chan error, 1)}
	kinds := must1(objectcache.NewOptionalKinds(mgr, func(_ ctrl.Manager, missing map[string]string) error {
		out.elected <- missing
		return nil
	}))(t)
	kinds.Settle, kinds.MinTerm = time.Second, time.Second
	must(t, mgr.Add(kinds))
	go func() { out.ended <- mgr.Start(t.Context()) }()
	return out
}

// requireElection waits until the candidate leads, and requires the kinds that are missing then.
func (c candidate) requireElection(t *testing.T, want map[string]string) {
	t.Helper()
	select {
	case missing := <-c.elected:
		if diff := cmp.Diff(want, missing); diff != "" {
			t.Errorf("missing kinds (-want +got):\n%s", diff)
		}
	case <-time.After(patience):
		t.Fatal("the candidate does not lead")
	}
}

func (c candidate) requireEnd(t *testing.T) {
	t.Helper()
	select {
	case err := <-c.ended:
		if !errors.Is(err, manager.ErrRestart) {
			t.Errorf("the candidate ended: %v", err)
		}
	case <-time.After(patience):
		t.Fatal("the candidate does not end")
	}
}

// TestOnlyTheLeaderEnds verifies that the leader ends when a CustomResourceDefinition is added and
// when it is removed, that a standby does not, and that it knows the current state when it leads.
func TestOnlyTheLeaderEnds(t *testing.T) {
	install := removeKinds(t, harness.HTTPRouteCRD)
	missing := map[string]string{"HTTPRoute": fmt.Sprintf(
		"CustomResourceDefinition %q does not exist, is not established, or is being deleted", harness.HTTPRouteCRD)}
	namespace := newNamespace(t)
	leader := newCandidate(t, namespace)
	leader.requireElection(t, missing)

	next := newCandidate(t, namespace)
	install()
	leader.requireEnd(t)
	next.requireElection(t, map[string]string{})

	last := newCandidate(t, namespace)
	installAgain := removeKinds(t, harness.HTTPRouteCRD)
	next.requireEnd(t)
	last.requireElection(t, missing)
	installAgain()
	last.requireEnd(t)
}
