package metrics

import "github.com/prometheus/client_golang/prometheus"

// NewRestores registers the counter of what the lifecycle guard restored, and returns what counts one, by its kind.
func NewRestores(registry prometheus.Registerer) func(kind string) {
	restores := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "nginx_operator_guard_repairs_total",
		Help: "Repairs of what conversion and admission need, by what was restored (conversion, webhooks, owner, certificate).",
	}, []string{"what"})
	registry.MustRegister(restores)
	return func(kind string) { restores.WithLabelValues(kind).Inc() }
}
