package metrics

import "github.com/prometheus/client_golang/prometheus"

// Fleet reports the progress of a release's rollout to the instances. Create it with NewFleet.
type Fleet struct {
	instances *prometheus.GaugeVec
}

// NewFleet registers the metric of the rollout.
func NewFleet(registry prometheus.Registerer) *Fleet {
	f := &Fleet{instances: prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "nginx_operator_fleet_rollout_instances",
		Help: "Instances that this release changes: waiting for a slot (waiting), with a slot (rolling), without a slot because they rolled " +
			"for too long (overdue), and with a failed rollout (failed). Only the leader reports values above 0.",
	}, []string{"state"})}
	registry.MustRegister(f.instances)
	f.Instances(0, 0, 0, 0)
	return f
}

// Instances sets the numbers of waiting, rolling, overdue, and failed instances.
func (f *Fleet) Instances(waiting, rolling, overdue, failed int) {
	f.instances.WithLabelValues("waiting").Set(float64(waiting))
	f.instances.WithLabelValues("rolling").Set(float64(rolling))
	f.instances.WithLabelValues("overdue").Set(float64(overdue))
	f.instances.WithLabelValues("failed").Set(float64(failed))
}
