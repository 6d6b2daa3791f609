package metrics

import "github.com/prometheus/client_golang/prometheus"

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
