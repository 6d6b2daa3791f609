package metrics

import "github.com/prometheus/client_golang/prometheus"

// Migration shows the storage migration. Make it with NewMigration.
type Migration struct {
	running, unmigrated prometheus.Gauge
	finished            *prometheus.CounterVec
}

// NewMigration registers the metrics of the storage migration.
func NewMigration(registry prometheus.Registerer) *Migration {
	m := &Migration{
		running: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "nginx_operator_storage_migration_running",
			Help: "1 while stored objects are being moved to another version of the API, else 0. Only the leader has it above 0.",
		}),
		unmigrated: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "nginx_operator_storage_migration_unmigrated_objects",
			Help: "NginxOperators that could not be moved to the stored version of the API. The log and their Events say why.",
		}),
		finished: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "nginx_operator_storage_migrations_total",
			Help: "Attempts to move all stored objects to another version of the API, by outcome (succeeded, failed).",
		}, []string{"outcome"}),
	}
	registry.MustRegister(m.running, m.unmigrated, m.finished)
	// Both are there from the start, so that a rate can be computed.
	m.finished.WithLabelValues(outcomeSucceeded)
	m.finished.WithLabelValues(outcomeFailed)
	return m
}

const (
	outcomeSucceeded = "succeeded"
	outcomeFailed    = "failed"
)

// Running reports whether a migration is under way.
func (m *Migration) Running(running bool) {
	m.running.Set(0)
	if running {
		m.running.Set(1)
	}
}

// Unmigrated tells how many objects could not be moved.
func (m *Migration) Unmigrated(objects int) { m.unmigrated.Set(float64(objects)) }

// Finished counts an attempt that has ended.
func (m *Migration) Finished(succeeded bool) {
	outcome := outcomeFailed
	if succeeded {
		outcome = outcomeSucceeded
	}
	m.finished.WithLabelValues(outcome).Inc()
}
