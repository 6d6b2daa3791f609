package metrics

import "github.com/prometheus/client_golang/prometheus"

// NewRepairs registers the counter of what the lifecycle guard repaired, and returns what counts one, by its kind.
func NewRepairs(registry prometheus.Registerer) func(kind string) {
	repairs := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "nginx_operator_guard_repairs_total",
		Help: "Repairs of what conversion and admission need, by what was repaired (conversion, webhooks, owner, certificate).",
	}, []string{"what"})
	registry.MustRegister(repairs)
	return func(kind string) { repairs.WithLabelValues(kind).Inc() }
}
