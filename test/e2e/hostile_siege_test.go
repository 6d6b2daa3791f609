package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/test/harness"
	"github.com/example/nginx-operator/test/harness/repeat"
)

// probesDuring is the number of successful readiness probes of each replica during a siege. The
// kubelet probes every two seconds, and a Pod is unready after three failures.
const probesDuring = 3

// repeated is a client that repeats a request.
type repeated struct {
	what string
	// workers make requests at the same time, with a pause after each.
	workers int
	pause   time.Duration
	// least is the number of requests that must succeed. always means that no request may fail.
	least  int
	always bool
	// do makes the n-th request of all workers. enough returns an error while more are needed, and
	// can be nil.
	do     func(ctx context.Context, n int) error
	enough func() error
}

// start starts the workers.
func (r repeated) start(ctx context.Context) *repeat.Calls {
	var next atomic.Int64
	workers := make([]func(context.Context, int) error, r.workers)
	for i := range workers {
		workers[i] = func(ctx context.Context, _ int) error { return r.do(ctx, int(next.Add(1)-1)) }
	}
	return repeat.Start(ctx, r.pause, workers...)
}

// siege lets clients repeat their requests at the same time, until each has made enough of them, a
// change that began meanwhile is applied in another namespace, and the kubelet has probed each
// replica. It requires that the API server misses no review, and that no probe fails.
func siege(t *testing.T, prober *neighbour, during string, clients ...repeated) {
	t.Helper()
	clients = append(clients, repeated{
		what: "reviews of the API server", workers: 1, pause: pollInterval, least: 10, always: true, do: reviewed,
	})
	before, missed, changes := probesOf(t), missedReviews(t), prober.Counts().Total
	running := make([]*repeat.Calls, len(clients))
	for i, client := range clients {
		running[i] = client.start(t.Context())
		t.Cleanup(func() { running[i].Stop() })
	}
	waitFor(t, suite.operatorNamespace, "enough "+during, patience, func(context.Context) error {
		for i, client := range clients {
			err := running[i].Counts().AtLeast(client.least)
			if err == nil && client.enough != nil {
				err = client.enough()
			}
			if err != nil {
				return fmt.Errorf("%s: %w", client.what, err)
			}
		}
		if prober.Counts().Total < changes+2 {
			return errors.New("no change that began meanwhile is applied in another namespace")
		}
		now := probesOf(t)
		for pod, count := range before.succeeded {
			if now.succeeded[pod] < count+probesDuring {
				return fmt.Errorf("the kubelet has probed %s %v times", pod, now.succeeded[pod]-count)
			}
		}
		return nil
	})
	for i, client := range clients {
		counts := running[i].Stop()
		t.Logf("FIGURE %s: %d, %d failed, the slowest took %s, the last failure: %.200v",
			client.what, counts.Total, counts.Failed, seconds(counts.Slowest), counts.Last)
		if client.always && counts.Failed > 0 {
			t.Errorf("%d of %d %s failed, the first: %v", counts.Failed, counts.Total, client.what, counts.First)
		}
	}
	if now := missedReviews(t); now != missed {
		t.Errorf("%s: the API server missed %v reviews", during, now-missed)
	}
	if now := probesOf(t); !maps.Equal(now.failed, before.failed) {
		t.Errorf("%s: failed probes by Pod: %v, before: %v", during, now.failed, before.failed)
	}
}

// reviewed makes the API server send reviews in dry runs. An invalid object is refused, which takes
// the validating webhook: without an answer within its 5 seconds, the API server would admit the
// object. A valid one is written at v1alpha1, which takes the conversion webhook.
func reviewed(ctx context.Context, _ int) error {
	wrong := newObject("default", "wrong", 0)
	wrong.Spec.Config = &v1alpha2.Config{Inline: "server { listen 8080; daemon on; }"}
	if err := suite.admin.Create(ctx, wrong, client.DryRunAll); !apierrors.IsInvalid(err) {
		return fmt.Errorf("an invalid object is answered with: %w", err)
	}
	valid := objectOf(v1alpha2.GroupVersion.Group+"/"+older, "NginxOperator", "valid")
	valid.SetNamespace("default")
	valid.Object["spec"] = map[string]any{"port": int64(8080)}
	return suite.admin.Create(ctx, valid, client.DryRunAll)
}

// missedReviews returns the number of reviews that the API server sent and that no operator
// answered in time.
func missedReviews(t *testing.T) (missed float64) {
	t.Helper()
	metrics := kubectl(t, "get", "--raw", "/metrics")
	for name, label := range map[string]string{
		"apiserver_admission_webhook_fail_open_count":             "type",
		"apiserver_admission_webhook_rejection_count":             "error_type=calling_webhook_error",
		"apiserver_crd_conversion_webhook_duration_seconds_count": "succeeded=false",
	} {
		key, value, _ := strings.Cut(label, "=")
		samples, err := harness.Samples(metrics, name)
		if err != nil {
			continue // nothing was missed since the API server started
		}
		for _, sample := range samples {
			own := strings.HasSuffix(sample.Labels["name"], crdName) || sample.Labels["crd_name"] == crdName
			if own && (value == "" || sample.Labels[key] == value) {
				missed += sample.Value
			}
		}
	}
	return missed
}

// probes are the kubelet's readiness probes of the operator by Pod.
type probes struct {
	succeeded, failed map[string]float64
}

func probesOf(t *testing.T) probes {
	t.Helper()
	out := probes{map[string]float64{}, map[string]float64{}}
	metrics := kubectl(t, "get", "--raw", "/api/v1/nodes/"+firstNode(t).Name+"/proxy/metrics/probes")
	samples, err := harness.Samples(metrics, "prober_probe_total")
	must(t, err)
	for _, sample := range samples {
		// OLM runs the Pod of the catalog in the same namespace, and the kubelet probes it less
		// often.
		if sample.Labels["namespace"] != suite.operatorNamespace || sample.Labels["container"] != "manager" ||
			sample.Labels["probe_type"] != "Readiness" {
			continue
		}
		if pod := sample.Labels["pod"]; sample.Labels["result"] == "successful" {
			out.succeeded[pod] += sample.Value
		} else {
			out.failed[pod] += sample.Value
		}
	}
	if len(out.succeeded) == 0 {
		t.Fatal("the kubelet has no probe of the operator")
	}
	return out
}
