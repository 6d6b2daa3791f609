package metrics

import "github.com/prometheus/client_golang/prometheus"

// Fleet shows how far the rollout of a release to the instances is. Make it with NewFleet.
type Fleet struct {
	instances *prometheus.GaugeVec
}

// NewFleet registers the metric of the rollout.
func NewFleet(registry prometheus.Registerer) *Fleet {
	f := &Fleet{instances: prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "nginx_operator_fleet_rollout_instances",
		Help: "Instances of which this release makes something else: those that wait for their turn (waiting), those that have begun and are " +
			"not Ready yet (rolling), and those whose rollout failed (failed), which stop the others. Only the leader has it above 0.",
	}, []string{"state"})}
	registry.MustRegister(f.instances)
	f.Instances(0, 0, 0)
	return f
}

// Instances tells how many instances wait, have begun, and have failed.
func (f *Fleet) Instances(waiting, rolling, failed int) {
	f.instances.WithLabelValues("waiting").Set(float64(waiting))
	f.instances.WithLabelValues("rolling").Set(float64(rolling))
	f.instances.WithLabelValues("failed").Set(float64(failed))
}
