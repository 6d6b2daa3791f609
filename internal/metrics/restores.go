package metrics

import "github.com/prometheus/client_golang/prometheus"

// NewRestores registers the counter of what the lifecycle guard restored, and returns what counts one, by its kind. The kinds are there
// from the start, so that a rate can be computed.
func NewRestores(registry prometheus.Registerer, kinds ...string) func(kind string) {
	restores := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "nginx_operator_guard_repairs_total",
		Help: "Restores of what conversion and admission need (conversion, webhooks, owner, certificate).",
	}, []string{"what"})
	registry.MustRegister(restores)
	for _, kind := range kinds {
		restores.WithLabelValues(kind)
	}
	return func(kind string) { restores.WithLabelValues(kind).Inc() }
}
