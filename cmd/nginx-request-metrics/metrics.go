package main

import (
	"cmp"
	"encoding/hex"
	"net/http"
	"regexp"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Values of the label server: at most maxServers, and otherServers for the rest, each with 34 series.
// The longest name has maxServerName bytes, as nginx writes it.
const (
	maxServers, maxServerName   = 100, 256
	otherServers, unnamedServer = "other", "_"
)

// classes are the values of the label class, by the first digit of the status code.
var classes = [...]string{"other", "1xx", "2xx", "3xx", "4xx", "5xx"}

// metrics counts messages. Only one goroutine may call record.
type metrics struct {
	registry  *prometheus.Registry
	newSeries func(server string) *series
	invalid   prometheus.Counter
	// servers has the series by the name in messages. Its size is at most maxServers.
	servers map[string]*series
	others  *series // nil until it is needed
}

// series are the metrics of a server.
type series struct {
	requests           [len(classes)]prometheus.Counter
	duration, upstream prometheus.Observer
	sent, received     prometheus.Counter
}

// newMetrics returns metrics without requests. lost is the number of dropped messages.
func newMetrics(lost func() float64) *metrics {
	registry := prometheus.NewRegistry()
	create := promauto.With(registry)
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return create.NewCounterVec(prometheus.CounterOpts{Name: "nginx_server_" + name, Help: help}, append(labels, "server"))
	}
	histogram := func(name, help string) *prometheus.HistogramVec {
		return create.NewHistogramVec(prometheus.HistogramOpts{
			Name: "nginx_server_" + name, Help: help, Buckets: []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 10},
		}, []string{"server"})
	}
	requests := counter("requests_total", "Requests by server and class of the status code.", "class")
	duration := histogram("request_duration_seconds", "Time from the first byte of a request to the last byte of its response.")
	upstream := histogram("upstream_duration_seconds", "Time of all upstream servers of a request.")
	sent := counter("sent_bytes_total", "Bytes of responses, with headers.")
	received := counter("received_bytes_total", "Bytes of requests, with headers.")
	create.NewCounterFunc(prometheus.CounterOpts{
		Name: "nginx_request_metrics_lost_messages_total", Help: "Messages that the kernel dropped because the receive buffer was full.",
	}, lost)

	newSeries := func(server string) *series {
		out := &series{
			duration: duration.WithLabelValues(server), upstream: upstream.WithLabelValues(server),
			sent: sent.WithLabelValues(server), received: received.WithLabelValues(server),
		}
		// All classes start at 0, so that rates are correct.
		for i, class := range classes {
			out.requests[i] = requests.WithLabelValues(class, server)
		}
		return out
	}
	return &metrics{
		registry: registry, newSeries: newSeries, servers: map[string]*series{},
		invalid: create.NewCounter(prometheus.CounterOpts{
			Name: "nginx_request_metrics_invalid_messages_total", Help: "Datagrams in another format than that of nginx.",
		}),
	}
}

// record counts a datagram. It allocates memory only for a new server.
func (m *metrics) record(datagram []byte) {
	numbers, server, valid := parse(datagram)
	if !valid {
		m.invalid.Inc()
		return
	}

	class := int(numbers[status]) / 100
	if class >= len(classes) {
		class = 0
	}
	to := m.seriesOf(server)
	to.requests[class].Inc()
	to.duration.Observe(numbers[duration])
	to.sent.Add(numbers[sent])
	to.received.Add(numbers[received])
	if numbers[upstream] != none {
		to.upstream.Observe(numbers[upstream])
	}
}

// seriesOf returns the series of the others for names beyond the bounds.
func (m *metrics) seriesOf(server []byte) *series {
	if known := m.servers[string(server)]; known != nil {
		return known
	}
	if len(m.servers) == maxServers || len(server) > maxServerName {
		if m.others == nil {
			m.others = m.newSeries(otherServers)
		}
		return m.others
	}
	added := m.newSeries(labelValue(server))
	m.servers[string(server)] = added
	return added
}

var escaped = regexp.MustCompile(`\\x[0-9A-F]{2}`)

// labelValue returns the name of a server in the configuration. nginx writes some bytes as \xHH, and
// Prometheus accepts only UTF-8.
func labelValue(server []byte) string {
	name := escaped.ReplaceAllFunc(server, func(escape []byte) []byte {
		raw, _ := hex.DecodeString(string(escape[2:]))
		return raw
	})
	return cmp.Or(strings.ToValidUTF8(string(name), "?"), unnamedServer)
}

// handler serves the metrics. Concurrent requests share one read of the registry.
func (m *metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{
		MaxRequestsInFlight: 4, CoalesceGather: true, DisableCompression: true, Timeout: clientTimeout,
	})
}
