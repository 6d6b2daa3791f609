package metrics

import (
	"context"
	"crypto/tls"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// NewFleet registers the metric of the fleet rollout. It returns a function that sets the
// numbers of waiting, rolling, overdue, and failed instances.
func NewFleet(registry prometheus.Registerer) func(waiting, rolling, overdue, failed int) {
	instances := promauto.With(registry).NewGaugeVec(prometheus.GaugeOpts{
		Name: "nginx_operator_fleet_rollout_instances",
		Help: "Instances that this release changes: waiting for a rollout slot (waiting), with a slot (rolling), without a slot because " +
			"they rolled for too long (overdue), and with a failed rollout (failed). Only the leader reports values above 0.",
	}, []string{"state"})

	set := func(waiting, rolling, overdue, failed int) {
		instances.WithLabelValues("waiting").Set(float64(waiting))
		instances.WithLabelValues("rolling").Set(float64(rolling))
		instances.WithLabelValues("overdue").Set(float64(overdue))
		instances.WithLabelValues("failed").Set(float64(failed))
	}

	set(0, 0, 0, 0)
	return set
}

// NewRestores returns a function that counts a restore of the lifecycle guard. All kinds exist from
// the start, so that Prometheus can compute a rate.
func NewRestores(registry prometheus.Registerer, kinds ...string) func(kind string) {
	restores := promauto.With(registry).NewCounterVec(prometheus.CounterOpts{
		Name: "nginx_operator_guard_repairs_total",
		Help: "Repairs of the CRD, the webhook configurations, or the certificate, by kind (conversion, webhooks, owner, certificate).",
	}, []string{"what"})

	for _, kind := range kinds {
		restores.WithLabelValues(kind)
	}
	return func(kind string) { restores.WithLabelValues(kind).Inc() }
}

// NewConversionFailures returns a function that counts a conversion review with a failure. Its
// status code is 200, so no metric of the webhook server shows it. Every Pod that reaches the
// server can raise it, so no alert depends on it.
func NewConversionFailures(registry prometheus.Registerer) func() {
	return promauto.With(registry).NewCounter(prometheus.CounterOpts{
		Name: "nginx_operator_conversion_failures_total",
		Help: "Conversion reviews answered with a failure. Every Pod that reaches the webhook can raise it, so do not alert on it.",
	}).Inc
}

// Migration reports the storage migration. Create it with NewMigration.
type Migration struct {
	running, unmigrated prometheus.Gauge
	finished            *prometheus.CounterVec
}

// NewMigration registers the metrics of the storage migration.
func NewMigration(registry prometheus.Registerer) *Migration {
	create := promauto.With(registry)
	m := &Migration{
		running: create.NewGauge(prometheus.GaugeOpts{
			Name: "nginx_operator_storage_migration_running",
			Help: "1 during a storage migration, else 0. Only the leader reports 1.",
		}),
		unmigrated: create.NewGauge(prometheus.GaugeOpts{
			Name: "nginx_operator_storage_migration_unmigrated_objects",
			Help: "NginxOperators that could not be migrated to the storage version. The log and their Events have the errors.",
		}),
		finished: create.NewCounterVec(prometheus.CounterOpts{
			Name: "nginx_operator_storage_migrations_total",
			Help: "Storage migrations, by outcome (succeeded, failed).",
		}, []string{"outcome"}),
	}

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

type webhookCertificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)

var webhookCertificateDesc = prometheus.NewDesc("nginx_operator_webhook_certificate_expiry_seconds",
	"Expiry of the certificate of this replica's webhooks, in seconds since 1970.", nil, nil)

// NewWebhookCertificate registers the gauge of the certificate that a function returns. If the
// function returns an error, there is no value.
func NewWebhookCertificate(registry prometheus.Registerer, serving func(*tls.ClientHelloInfo) (*tls.Certificate, error)) {
	registry.MustRegister(webhookCertificate(serving))
}

// Describe implements prometheus.Collector.
func (webhookCertificate) Describe(descs chan<- *prometheus.Desc) { descs <- webhookCertificateDesc }

// Collect implements prometheus.Collector.
func (serving webhookCertificate) Collect(metrics chan<- prometheus.Metric) {
	if certificate, err := serving(nil); err == nil && certificate.Leaf != nil {
		metrics <- prometheus.MustNewConstMetric(webhookCertificateDesc, prometheus.GaugeValue, float64(certificate.Leaf.NotAfter.Unix()))
	}
}

const (
	// readEvery is the time between two reads of a version. readTimeout bounds each read.
	readEvery   = time.Minute
	readTimeout = 10 * time.Second
)

// Versions reports whether objects can be read at each version of their API, through the API server
// and the conversion. Requests that a Pod posts to the webhooks do not change the result. Create it
// with NewVersions, and add it to a manager: only the leader reads.
type Versions struct {
	reader     client.Reader
	namespaces []string
	kinds      []schema.GroupVersionKind
	readable   *prometheus.GaugeVec
}

// NewVersions registers the metric. The reader must read from the API server, because a cache does
// not notice a failed conversion. It reads in the namespaces, or in all namespaces if there are
// none. The kinds are list kinds, one for each version.
func NewVersions(
	registry prometheus.Registerer, reader client.Reader, namespaces []string, kinds ...schema.GroupVersionKind,
) *Versions {
	if len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}

	readable := promauto.With(registry).NewGaugeVec(prometheus.GaugeOpts{
		Name: "nginx_operator_api_readable",
		Help: "1 if the operator could read NginxOperators at this version of the API within the last minute, else 0. " +
			"Only the leader reports it.",
	}, []string{"version"})
	return &Versions{reader: reader, namespaces: namespaces, kinds: kinds, readable: readable}
}

// Start implements manager.Runnable. It ends with the context.
func (v *Versions) Start(ctx context.Context) error {
	wait.NonSlidingUntilWithContext(ctx, func(ctx context.Context) {
		for _, kind := range v.kinds {
			v.read(ctx, kind)
		}
	}, readEvery)
	return nil
}

func (v *Versions) read(ctx context.Context, kind schema.GroupVersionKind) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	readable := v.readable.WithLabelValues(kind.Version)
	for _, namespace := range v.namespaces {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind)
		err := v.reader.List(ctx, list, client.Limit(1), client.InNamespace(namespace))
		if namespace != metav1.NamespaceAll && apierrors.IsForbidden(err) {
			continue // a missing binding in one namespace says nothing about the API
		}

		if err != nil {
			log.FromContext(ctx).Error(err, "Failed to read NginxOperators", "version", kind.Version, "namespace", namespace)
			readable.Set(0)
			return
		}

		if len(list.Items) > 0 {
			break
		}
	}

	readable.Set(1)
}
