package metrics

import "github.com/prometheus/client_golang/prometheus"

// NewConversionFailures registers the counter of conversion reviews that are answered with a failure, and returns what counts one. Their
// status code is 200 all the same, so no metric of the webhook server shows them.
func NewConversionFailures(registry prometheus.Registerer) func() {
	failures := prometheus.NewCounter(prometheus.CounterOpts{
		Name: "nginx_operator_conversion_failures_total",
		Help: "Conversion reviews answered with a failure: reads and writes of clients that failed.",
	})
	registry.MustRegister(failures)
	return failures.Inc
}
