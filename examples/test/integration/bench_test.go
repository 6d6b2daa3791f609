//go:build bench

package integration

import (
	"context"
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/test/harness"
)

// init selects the manager without the race detector.
func init() { program = "test/examples" }

// TestTenThousandPods creates 10,000 Pods with a sidecar. It compares the cost of a change of 100
// Pods with the cost of the same change among 1,000 Pods. `make bench` runs it. The status must be
// right at each step, the work must not grow faster than the number of Pods, and the memory must
// stay below the limit of the manager's Deployment.
func TestTenThousandPods(t *testing.T) {
	const few, many, changed, limit = 1_000, 10_000, 100, 512
	namespace := newNamespace(t)
	set := newSidecarSet(t, namespace)
	processorTime := func() time.Duration { return harness.Must1(harness.ProcessorTime(suite.operator.Pid()))(t) }
	// measure creates Pods until there are to Pods, then makes 100 of them ready, and returns the
	// cost of that.
	measure := func(from, to, ready int32) (work, reconciled float64) {
		began := time.Now()
		must(t, harness.InParallel(t.Context(), 8, int(to-from), func(ctx context.Context, i int) error {
			return suite.admin.Create(ctx, selected(namespace, fmt.Sprint("pod-", int(from)+i)))
		}))
		waitForCounts(t, set, to, to, ready)
		harness.Report(fmt.Sprintf("sidecarset-create-and-count-%d", to-from), harness.Round(time.Since(began).Seconds()), "s")
		before, used := settled(t, "sidecarset"), processorTime()
		must(t, harness.InParallel(t.Context(), 8, changed, func(ctx context.Context, i int) error {
			status := []byte(`{"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}}`)
			pod := newPod(namespace, fmt.Sprint("pod-", int(ready)+i))
			return suite.admin.Status().Patch(ctx, pod, client.RawPatch(types.StrategicMergePatchType, status))
		}))
		reconciled = float64(settled(t, "sidecarset") - before)
		work = (processorTime() - used).Seconds()
		waitForCounts(t, set, to, to, ready+changed)
		harness.Report(fmt.Sprintf("sidecarset-change-100-among-%d", to), harness.Round(work), "s of the processor")
		harness.Report(fmt.Sprintf("sidecarset-change-100-among-%d-reconciles", to), reconciled, "reconciles")
		return work, reconciled
	}
	fewWork, _ := measure(0, few, 0)
	manyWork, manyReconciles := measure(few, many, changed)
	if manyReconciles > changed+1 || manyWork > many/few*fewWork+5 {
		t.Error("the work grows faster than the number of Pods")
	}

	suite.operator.Kill()
	began := time.Now()
	must(t, startOperator())
	// After the first reconcile, the status is based on a new count.
	waitUntil(t, "not reconciled", func() bool { return reconciles(t, "sidecarset") > 0 })
	harness.Report("sidecarset-restart-with-10000", harness.Round(time.Since(began).Seconds()), "s")
	if n := settled(t, "sidecarset"); n > 1 {
		t.Errorf("a restart costs %d reconciles", n)
	}
	waitForCounts(t, set, many, many, 2*changed)
	resident, _, err := harness.Memory(suite.operator.Pid())
	must(t, err)
	harness.Report("sidecarset-memory-with-10000", resident, "MiB")
	if resident > limit {
		t.Errorf("%.0f MiB are more than the limit", resident)
	}
}
