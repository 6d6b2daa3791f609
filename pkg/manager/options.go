package manager

// Options are the settings of the process of an operator.
type Options struct {
	// LeaderElect enables leader election, with a Lease in LeaderElectionNamespace, or in the
	// operator's namespace if that is "".
	LeaderElect             bool
	LeaderElectionNamespace string
	// MetricsBindAddress is host:port of the HTTPS metrics endpoint, or "0" to disable it.
	// MetricsCertDir has its tls.crt and tls.key, or is "" for a self-signed certificate.
	MetricsBindAddress, MetricsCertDir string
	// HealthProbeBindAddress is host:port of /healthz and /readyz.
	HealthProbeBindAddress string
	// OperatorNamespace is the namespace of the operator, and of its webhooks' Service and Secret.
	OperatorNamespace string
	// WebhookBindAddress is host:port of the HTTPS endpoint for conversion and admission.
	WebhookBindAddress string
	// WebhookServiceName is the Service of it, and WebhookSecretName the Secret with its certificate.
	WebhookServiceName, WebhookSecretName string
	// WebhookURL replaces the Service if the operator runs outside the cluster: https://host:port.
	WebhookURL string
	// OLM is true if a bundle installed the operator. ClusterServiceVersion is "" without OLM v0.
	OLM                   bool
	ClusterServiceVersion string
	// KubeAPIQPS and KubeAPIBurst limit the rate and the burst of requests to the API server.
	KubeAPIQPS   float32
	KubeAPIBurst int
}
