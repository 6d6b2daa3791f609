package metrics

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// What the guard and the conversion count is there before anything is counted, or a rate would miss the first one.
func TestCountersBeginAtZero(t *testing.T) {
	registry := prometheus.NewRegistry()
	restored := NewRestores(registry, "owner", "webhooks")
	failed := NewConversionFailures(registry)
	text := func(owner, webhooks, failures string) string {
		return `
# HELP nginx_operator_conversion_failures_total Conversion reviews answered with a failure: reads and writes of clients that failed.
# TYPE nginx_operator_conversion_failures_total counter
nginx_operator_conversion_failures_total ` + failures + `
# HELP nginx_operator_guard_repairs_total Restores of what conversion and admission need (conversion, webhooks, owner, certificate).
# TYPE nginx_operator_guard_repairs_total counter
nginx_operator_guard_repairs_total{what="owner"} ` + owner + `
nginx_operator_guard_repairs_total{what="webhooks"} ` + webhooks + "\n"
	}
	if err := testutil.GatherAndCompare(registry, strings.NewReader(text("0", "0", "0"))); err != nil {
		t.Error(err)
	}
	restored("owner")
	failed()
	if err := testutil.GatherAndCompare(registry, strings.NewReader(text("1", "0", "1"))); err != nil {
		t.Error(err)
	}
}
