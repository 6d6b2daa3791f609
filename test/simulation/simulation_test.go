// The operator's libraries take the jitter of their back-off from the global generator of
// math/rand. Without this setting, the simulation could not seed it.
//go:debug randseednop=0

// Package simulation runs the operator in one process, on a model of a cluster and a virtual clock.
// A seed determines the complete run.
package simulation

import (
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/intstr"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

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
