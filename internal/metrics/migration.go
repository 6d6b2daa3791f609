package metrics

import "github.com/prometheus/client_golang/prometheus"

// Migration reports the storage migration. Create it with NewMigration.
type Migration struct {
	running, unmigrated prometheus.Gauge
	finished            *prometheus.CounterVec
}

// NewMigration registers the metrics of the storage migration.
func NewMigration(registry prometheus.Registerer) *Migration {
	m := &Migration{
		running: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "nginx_operator_storage_migration_running",
			Help: "1 during a storage migration, else 0. Only the leader reports 1.",
		}),
		unmigrated: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "nginx_operator_storage_migration_unmigrated_objects",
			Help: "NginxOperators that could not be migrated to the storage version. The log and their Events have the errors.",
		}),
		finished: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "nginx_operator_storage_migrations_total",
			Help: "Storage migrations, by outcome (succeeded, failed).",
		}, []string{"outcome"}),
	}
	registry.MustRegister(m.running, m.unmigrated, m.finished)
	// Both outcomes exist from the start, so that Prometheus can compute a rate.
	m.finished.WithLabelValues(succeeded)
	m.finished.WithLabelValues(failed)
	return m
}

const succeeded, failed = "succeeded", "failed"

// Running sets whether a migration is in progress.
func (m *Migration) Running(running bool) {
	m.running.Set(0)
	if running {
		m.running.Set(1)
	}
}

// Unmigrated sets the number of objects that could not be migrated.
func (m *Migration) Unmigrated(objects int) { m.unmigrated.Set(float64(objects)) }

// Finished counts a finished attempt.
func (m *Migration) Finished(hasSucceeded bool) {
	outcome := failed
	if hasSucceeded {
		outcome = succeeded
	}
	m.finished.WithLabelValues(outcome).Inc()
}
