// Package metrics has the operator's own metrics. They are served together with the metrics of
// controller-runtime. Labels have few values and never the name of an object, so the number of
// series does not grow with the cluster.
package metrics

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/cached"
	"github.com/example/nginx-operator/pkg/apply"
)

// Metrics counts writes of children and measures the time to Ready. Create it with New.
type Metrics struct {
	childWrites *prometheus.CounterVec
	timeToReady prometheus.Histogram
}

// New returns the metrics and registers them. They include the number of NginxOperators.
func New(registry prometheus.Registerer, instances Instances) *Metrics {
	m := &Metrics{
		childWrites: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "nginx_operator_child_writes_total",
			Help: "Writes of children, by kind and verb (create, patch, delete). It does not grow at steady state.",
		}, []string{"kind", "verb"}),
		timeToReady: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "nginx_operator_time_to_ready_seconds",
			Help:    "Time from the first reconcile of a changed spec until the NginxOperator was Ready.",
			Buckets: []float64{0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600},
		}),
	}

	registry.MustRegister(m.childWrites, m.timeToReady, instances)
	return m
}

// ChildWritten counts one write of a child object.
func (m *Metrics) ChildWritten(kind string, verb apply.Verb) {
	m.childWrites.WithLabelValues(kind, string(verb)).Inc()
}

// Ready observes the time until a change of an object was ready.
func (m *Metrics) Ready(took time.Duration) { m.timeToReady.Observe(took.Seconds()) }

// Instances returns all NginxOperators, or false if this replica does not have them. As a
// collector, it counts them by what their status reports.
type Instances func(ctx context.Context) ([]v1alpha2.NginxOperator, bool)

var objectsDesc = prometheus.NewDesc("nginx_operator_objects",
	"NginxOperators by the status of their Ready condition (True, False, Unknown). Only the leader reports them.",
	[]string{"ready"}, nil)

var blockedDesc = prometheus.NewDesc("nginx_operator_blocked_objects",
	"Blocked NginxOperators, whose running state differs from the spec, by the reason in status.blockedBy. They can be Ready. "+
		"Only the leader reports them.",
	[]string{"reason"}, nil)

var unreadableDesc = prometheus.NewDesc("nginx_operator_unreadable_objects",
	"NginxOperators that are stored with an unreadable value. Only the leader reports them.", nil, nil)

var downDesc = prometheus.NewDesc("nginx_operator_down_objects",
	"NginxOperators that have been Ready, have replicas above 0, and have no ready Pod. Only the leader reports them.", nil, nil)

var certificatesDesc = prometheus.NewDesc("nginx_operator_certificates",
	"Certificates that the Pods of NginxOperators mount, by remaining time: expired, 7d (at most seven days), 30d, more. "+
		"Only the leader reports them.", []string{"left"}, nil)

var waitingDesc = prometheus.NewDesc("nginx_operator_waiting_objects",
	"NginxOperators whose latest generation is not reconciled yet. Only the leader reports them.", nil, nil)

var syncedDesc = prometheus.NewDesc("nginx_operator_cache_synced",
	"1 if the cache of this replica holds all NginxOperators, else 0. Only the leader fills its cache and reconciles.", nil, nil)

// Describe implements prometheus.Collector.
func (Instances) Describe(descs chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{
		objectsDesc, blockedDesc, unreadableDesc, downDesc, waitingDesc, certificatesDesc, syncedDesc,
	} {
		descs <- desc
	}
}

// Collect implements prometheus.Collector.
func (i Instances) Collect(metrics chan<- prometheus.Metric) {
	gauge := func(desc *prometheus.Desc, value int, labels ...string) {
		metrics <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, float64(value), labels...)
	}

	instances, complete := i(context.Background())
	if !complete {
		// An invalid metric would fail the whole scrape of a standby.
		gauge(syncedDesc, 0)
		return
	}

	gauge(syncedDesc, 1)
	unreadable, waiting, down := 0, 0, 0
	blocked := map[string]int{}
	counts := map[metav1.ConditionStatus]int{metav1.ConditionTrue: 0, metav1.ConditionFalse: 0, metav1.ConditionUnknown: 0}
	certificates, now := map[string]int{"expired": 0, "7d": 0, "30d": 0, "more": 0}, time.Now()
	for i := range instances {
		state := cached.StateOf(&instances[i])
		counts[state.Ready]++
		if state.Unreadable {
			unreadable++
		}
		if state.Down {
			down++
		}
		if state.Waiting {
			waiting++
		}
		for _, expiry := range state.Expiries {
			certificates[leftOf(expiry, now)]++
		}
		for _, reason := range state.Blocking {
			blocked[reason]++
		}
	}

	gauge(unreadableDesc, unreadable)
	gauge(downDesc, down)
	gauge(waitingDesc, waiting)
	for left, count := range certificates {
		gauge(certificatesDesc, count, left)
	}
	for status, count := range counts {
		gauge(objectsDesc, count, string(status))
	}
	for _, reason := range cached.BlockingReasons() {
		gauge(blockedDesc, blocked[reason], reason)
	}
}

func leftOf(notAfter, now time.Time) string {
	switch left := notAfter.Sub(now); {
	case left <= 0:
		return "expired"
	case left <= 7*24*time.Hour:
		return "7d"
	case left <= 30*24*time.Hour:
		return "30d"
	}
	return "more"
}
