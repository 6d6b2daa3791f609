// The operator's libraries take the jitter of their back-off from the global generator of
// math/rand. Without this setting, the simulation could not seed it.
//go:debug randseednop=0

// Package simulation runs the operator in one process, on a model of a cluster and a virtual clock.
// A seed determines the complete run.
package simulation

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/intstr"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/fleet"
	"github.com/example/nginx-operator/test/simulation/world"
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	// The default handler sleeps by the wall clock, but the virtual clock starts in the year 2000.
	utilruntime.ErrorHandlers = nil
	m.Run()
}

// policy and release are the release under test.
var (
	policy  = fleet.Policy{MaxUnavailable: intstr.FromInt32(1), FailureThreshold: fleet.DefaultFailureThreshold}
	release = world.Release{Image: "registry.example/nginx:1", ExporterImage: "registry.example/exporter:1", Fleet: policy}
)

// inWorld runs a scenario on a virtual clock, with a running operator.
func inWorld(t *testing.T, scenario func(*testing.T, *world.World)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := world.New(release, 1)
		if testing.Verbose() {
			began := time.Now()
			w.Trace = func(line string) { t.Logf("%8.3f %s", time.Since(began).Seconds(), line) }
		}
		w.Start(0)
		defer w.Stop()
		scenario(t, w)
	})
}

// newInstance returns an instance with two replicas.
func newInstance(name string) *v1alpha2.NginxOperator { //nolint:unparam // tests refer to the instance by the name that they give
	out := &v1alpha2.NginxOperator{ObjectMeta: world.Meta(name)}
	out.Spec.Replicas = ptr.To[int32](2)
	return out
}

// serve creates an instance and waits until it is ready.
func serve(t *testing.T, w *world.World, object *v1alpha2.NginxOperator) {
	t.Helper()
	w.Must(w.Write(object))
	ready(t, w, object.Name)
}

func ready(t *testing.T, w *world.World, name string) {
	t.Helper()
	if !w.Until(5*time.Minute, func() bool { return world.IsReady(w.Instance(name)) }) {
		t.Fatalf("%s is not ready: %+v", name, w.Instance(name).Status.Conditions)
	}
}

// TestReady verifies that an instance becomes ready, and causes no requests at steady state.
func TestReady(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world.World) {
		serve(t, w, newInstance("web"))
		if got := w.Deployment("web").Status.ReadyReplicas; got != 2 {
			t.Errorf("%d Pods are ready, want 2", got)
		}
		w.Run(time.Minute)
		before := w.Requests
		w.Run(time.Hour)
		if got := w.Requests - before; got != 0 {
			t.Errorf("%d requests at steady state, want none", got)
		}
	})
}
