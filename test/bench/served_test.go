//go:build bench

package bench

import (
	"errors"
	"fmt"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha1"
	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/test/harness"
)

// conversionsMetric is the number of calls of the conversion webhook, in the API server's metrics.
// The API server converts one object per call when it reads stored objects.
const conversionsMetric = "apiserver_crd_conversion_webhook_duration_seconds_count"

// filled is the cost of an API server that fills its caches of NginxOperators.
type filled struct {
	conversions int
	// took is the time until it had converted all objects, 0 if there was nothing to convert.
	took time.Duration
	// apiServer and operator are the CPU times until both are idle. The operator lists the objects
	// again, because its watch ends with the caches.
	apiServer, operator time.Duration
}

// compareServed measures what a served v1alpha1 costs an API server at its start, if all objects
// are stored at v1alpha2. The API server has a cache for each served version, which it fills at the
// first request for the kind after its start, and after each change of the CRD's spec. So
// compareServed changes served of v1alpha1 to false and back. The difference of the two costs is
// that of v1alpha1.
func (e *environment) compareServed(t *testing.T, leader *harness.Manager, objects int, patience time.Duration) {
	t.Helper()
	e.waitForBothIdle(t, leader, patience)
	without := e.fillCaches(t, leader, false, 0, patience)
	with := e.fillCaches(t, leader, true, objects, patience)
	table := "| v1alpha1 | conversions | until all objects are converted | processor time of the API server | of the operator |\n" +
		"|---|---|---|---|---|\n"
	for _, row := range []struct {
		name string
		filled
	}{{"not served", without}, {"served", with}} {
		table += fmt.Sprintf("| %s | %d | %.0f s | %.0f s | %.0f s |\n",
			row.name, row.conversions, row.took.Seconds(), row.apiServer.Seconds(), row.operator.Seconds())
	}
	metric := fmt.Sprintf("served-v1alpha1-%d-", objects)
	harness.Report(metric+"conversions", float64(with.conversions-without.conversions), "calls")
	harness.Report(metric+"conversion-time", seconds(with.took), "s")
	harness.Report(metric+"api-server", seconds(with.apiServer-without.apiServer), "s of processor time")
	harness.Report(metric+"operator", seconds(with.operator-without.operator), "s of processor time")
	writePlace(t, "served-v1alpha1", table, objects != pageObjects)
	if without.conversions >= objects {
		t.Errorf("%d conversions without a served v1alpha1, so the comparison shows nothing", without.conversions)
	}
}

// fillCaches sets served of v1alpha1, and returns the cost until the API server has made at least
// the given number of conversions and is idle.
func (e *environment) fillCaches(t *testing.T, leader *harness.Manager, served bool, conversions int, patience time.Duration) (out filled) {
	t.Helper()
	converted, apiServer, operator := e.conversions(t), e.apiServerTime(t), processorTime(t, leader.Pid())
	began := time.Now()
	e.serve(t, served)
	waitFor(t, patience, func() error {
		// The first request fills the caches.
		if err := e.admin.List(t.Context(), &v1alpha2.NginxOperatorList{}, client.Limit(1)); err != nil {
			return err
		}
		out.conversions = e.conversions(t) - converted
		if out.conversions < conversions {
			time.Sleep(scrapeEvery)
			return fmt.Errorf("%d of %d conversions", out.conversions, conversions)
		}
		return nil
	})
	if conversions > 0 {
		out.took = time.Since(began)
	}
	time.Sleep(scrapeEvery) // the API server ends watches of the earlier caches after a second
	e.waitForBothIdle(t, leader, patience)
	out.conversions = e.conversions(t) - converted
	out.apiServer, out.operator = e.apiServerTime(t)-apiServer, processorTime(t, leader.Pid())-operator
	return out
}

// conversions returns the number of successful calls of the conversion webhook so far.
func (e *environment) conversions(t *testing.T) (n int) {
	t.Helper()
	raw := must1(e.metrics.Get().AbsPath("/metrics").DoRaw(t.Context()))(t)
	for _, sample := range must1(harness.Samples(string(raw), conversionsMetric))(t) {
		if sample.Labels["succeeded"] == "true" {
			n += int(sample.Value)
		}
	}
	return n
}

// serve sets served of v1alpha1 in the CRD.
func (e *environment) serve(t *testing.T, served bool) {
	t.Helper()
	e.updateCRD(t, func(crd *apiextensionsv1.CustomResourceDefinition) {
		for i := range crd.Spec.Versions {
			if crd.Spec.Versions[i].Name == v1alpha1.GroupVersion.Version {
				crd.Spec.Versions[i].Served = served
			}
		}
	})
}

// waitForBothIdle waits until the API server and the operator have used less than a tenth of a
// processor for six seconds.
func (e *environment) waitForBothIdle(t *testing.T, leader *harness.Manager, patience time.Duration) {
	t.Helper()
	const interval = 6 * time.Second
	waitFor(t, patience, func() error {
		before := e.apiServerTime(t) + processorTime(t, leader.Pid())
		time.Sleep(interval)
		if e.apiServerTime(t)+processorTime(t, leader.Pid())-before > interval/10 {
			return errors.New("the API server and the operator are not idle")
		}
		return nil
	})
}
