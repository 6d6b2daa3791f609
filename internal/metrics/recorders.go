package metrics

import "github.com/prometheus/client_golang/prometheus"

// NewFleet registers the metric of the rollout of a release. It returns a function that sets the
// numbers of waiting, rolling, overdue, and failed instances.
func NewFleet(registry prometheus.Registerer) func(waiting, rolling, overdue, failed int) {
	instances := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "nginx_operator_fleet_rollout_instances",
		Help: "Instances that this release changes: waiting for a slot (waiting), with a slot (rolling), without a slot because they rolled " +
			"for too long (overdue), and with a failed rollout (failed). Only the leader reports values above 0.",
	}, []string{"state"})
	registry.MustRegister(instances)
	set := func(waiting, rolling, overdue, failed int) {
		instances.WithLabelValues("waiting").Set(float64(waiting))
		instances.WithLabelValues("rolling").Set(float64(rolling))
		instances.WithLabelValues("overdue").Set(float64(overdue))
		instances.WithLabelValues("failed").Set(float64(failed))
	}
	set(0, 0, 0, 0)
	return set
}

// NewRestores registers the counter of the lifecycle guard's restores. It returns a function that
// counts a restore of a kind. All kinds exist from the start, so that Prometheus can compute a
// rate.
func NewRestores(registry prometheus.Registerer, kinds ...string) func(kind string) {
	restores := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "nginx_operator_guard_repairs_total",
		Help: "Restores by the lifecycle guard, by kind (conversion, webhooks, owner, certificate).",
	}, []string{"what"})
	registry.MustRegister(restores)
	for _, kind := range kinds {
		restores.WithLabelValues(kind)
	}
	return func(kind string) { restores.WithLabelValues(kind).Inc() }
}

// NewConversionFailures registers the counter of conversion reviews that are answered with a
// failure, and returns a function that counts one. Their status code is 200, so no metric of the
// webhook server shows them. Every Pod that reaches the webhook server can raise the counter, so no
// alert depends on it.
func NewConversionFailures(registry prometheus.Registerer) func() {
	failures := prometheus.NewCounter(prometheus.CounterOpts{
		Name: "nginx_operator_conversion_failures_total",
		Help: "Conversion reviews answered with a failure. Every Pod that reaches the webhook can raise it, so do not alert on it.",
	})
	registry.MustRegister(failures)
	return failures.Inc
}
