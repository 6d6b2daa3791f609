//go:build bench

package integration

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/examples/sidecarset/api/v1alpha1"
	"github.com/example/nginx-operator/test/harness"
)

// What is measured is built as it is delivered.
func init() { race = "-race=false" }

// Ten thousand Pods with a sidecar, and what a change of a hundred of them costs the manager, compared with the same change among
// a thousand. `make bench` runs it. The status is right at each step, the work grows no faster than the number of Pods, and the
// memory stays below the limit of the manager's Deployment.
func TestTenThousandPods(t *testing.T) {
	const few, many, changed, limit = 1_000, 10_000, 100, 512 << 20
	namespace := newNamespace(t)
	set := newSidecarSet(t, namespace)
	create := func(from, to, ready int) {
		began := time.Now()
		must(t, harness.InParallel(t.Context(), 8, to-from, func(ctx context.Context, i int) error {
			pod := newPod(namespace, fmt.Sprint("pod-", from+i))
			pod.Labels = map[string]string{"app": namespace}
			return suite.admin.Create(ctx, pod)
		}))
		waitForMany(t, set, to, ready)
		harness.Report(fmt.Sprintf("sidecarset-create-and-count-%d", to-from), harness.Round(time.Since(began).Seconds()), "s")
	}
	// change makes Pods ready, and returns what that cost.
	change := func(from int) (work, reconciled float64) {
		before, began := settled(t, "sidecarset"), metric(t, "process_cpu_seconds_total ")
		must(t, harness.InParallel(t.Context(), 8, changed, func(ctx context.Context, i int) error {
			ready := []byte(`{"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}}`)
			pod := newPod(namespace, fmt.Sprint("pod-", from+i))
			return suite.admin.Status().Patch(ctx, pod, client.RawPatch(types.StrategicMergePatchType, ready))
		}))
		after := settled(t, "sidecarset")
		return metric(t, "process_cpu_seconds_total ") - began, float64(after - before)
	}
	create(0, few, 0)
	fewWork, fewReconciles := change(0)
	waitForMany(t, set, few, changed)
	create(few, many, changed)
	manyWork, manyReconciles := change(changed)
	waitForMany(t, set, many, 2*changed)
	harness.Report("sidecarset-change-100-among-1000", harness.Round(fewWork), "s of the processor")
	harness.Report("sidecarset-change-100-among-1000-reconciles", harness.Round(fewReconciles), "reconciles")
	harness.Report("sidecarset-change-100-among-10000", harness.Round(manyWork), "s of the processor")
	harness.Report("sidecarset-change-100-among-10000-reconciles", harness.Round(manyReconciles), "reconciles")
	if manyReconciles > changed+1 || manyWork > many/few*fewWork+5 {
		t.Error("the work grows faster than the number of Pods")
	}

	suite.operator.Kill()
	began := time.Now()
	must(t, startOperator())
	// What the status says by then was counted anew.
	waitFor(t, func() error {
		if reconciles(t, "sidecarset") == 0 {
			return errors.New("there was no reconcile yet")
		}
		return nil
	})
	harness.Report("sidecarset-restart-with-10000", harness.Round(time.Since(began).Seconds()), "s")
	if n := settled(t, "sidecarset"); n > 1 {
		t.Errorf("a restart costs %d reconciles", n)
	}
	waitForMany(t, set, many, 2*changed)
	resident := metric(t, "process_resident_memory_bytes ")
	harness.Report("sidecarset-memory-with-10000", harness.Round(resident/(1<<20)), "MiB")
	if resident > limit {
		t.Errorf("%.0f bytes are more than the limit", resident)
	}
}

// waitForMany waits until so many Pods are counted, all with the sidecar as it is declared.
func waitForMany(t *testing.T, set *v1alpha1.SidecarSet, pods, ready int) {
	t.Helper()
	waitForCounts(t, set, int32(pods), int32(pods), int32(ready)) //nolint:gosec // constants of the test
}
