package metrics

import (
	"crypto/tls"

	"github.com/prometheus/client_golang/prometheus"
)

// webhookCertificate reports the expiry of the webhook certificate.
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
