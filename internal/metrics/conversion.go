package metrics

import "github.com/prometheus/client_golang/prometheus"

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
