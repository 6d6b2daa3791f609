package v1alpha2

// Values of spec.monitoring.exporter.
const (
	// ExporterSidecar runs nginx-prometheus-exporter in each Pod.
	ExporterSidecar ExporterMode = "Sidecar"
	// ExporterNone runs no exporter. nginx serves stub_status to the containers of its own Pod
	// only.
	ExporterNone ExporterMode = "None"
)

// ExporterMode selects the exporter that provides Prometheus metrics.
// +kubebuilder:validation:Enum=Sidecar;None
type ExporterMode string

// Monitoring enables stub_status in nginx, and its export as Prometheus metrics.
// +kubebuilder:validation:XValidation:rule="!has(self.exporter) || self.exporter != 'None' || !(has(self.image) || has(self.resources) || has(self.podMonitor) || has(self.alerts))",message="exporter None runs no exporter, so image, resources, podMonitor, and alerts have no effect; remove them, or set exporter to Sidecar"
type Monitoring struct {
	// enabled turns monitoring on. Defaults to true if monitoring is set.
	// +optional
	Enabled *bool `json:"enabled,omitempty"`

	// exporter is Sidecar or None. Sidecar runs nginx-prometheus-exporter in each Pod, which
	// serves metrics on port 9113, or on the next port that nginx does not use. None runs no
	// exporter, and nginx serves http://127.0.0.1:18081/stub_status for your own exporter in
	// sidecars. Defaults to Sidecar.
	// +optional
	Exporter ExporterMode `json:"exporter,omitempty"`

	// image is the container image of the exporter, at most 512 characters. Defaults to the
	// image that the operator is configured with (RELATED_IMAGE_NGINX_PROMETHEUS_EXPORTER).
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Image string `json:"image,omitempty"`

	// resources are the compute resources of the exporter. Defaults to requests of 5m CPU and
	// 16Mi memory, without limits. A value replaces the whole default.
	// +optional
	Resources *ContainerResources `json:"resources,omitempty"`

	// requestMetrics counts the requests of each server by status class, with their duration, the
	// response time of upstreams, and their bytes. A receiver in each Pod serves these metrics on
	// port 9114, or on the next port that nginx does not use. Requires the exporter Sidecar. Off by
	// default; {} turns it on.
	// +optional
	RequestMetrics *RequestMetrics `json:"requestMetrics,omitempty"`

	// podMonitor creates a PodMonitor (monitoring.coreos.com/v1), so that the Prometheus
	// Operator scrapes the metrics. The cluster must serve that API. Off by default.
	// +optional
	PodMonitor *PodMonitor `json:"podMonitor,omitempty"`

	// alerts creates a PrometheusRule (monitoring.coreos.com/v1) with alerts for the metrics.
	// The cluster must serve that API. Off by default.
	// +optional
	Alerts *Alerts `json:"alerts,omitempty"`
}

// RequestMetrics configures the receiver that counts requests.
type RequestMetrics struct {
	// resources are the compute resources of the receiver. Defaults to requests of 10m CPU and
	// 16Mi memory, and to a limit of 64Mi memory. A value replaces the whole default.
	// +optional
	Resources *ContainerResources `json:"resources,omitempty"`
}

// PodMonitor configures the PodMonitor of an instance.
type PodMonitor struct {
	// labels of the PodMonitor, at most 16, for example to match the selector of a Prometheus.
	// +optional
	// +kubebuilder:validation:MaxProperties=16
	Labels map[string]string `json:"labels,omitempty"`

	// interval is the time between two scrapes, in seconds or minutes, at least 5s, for example
	// 30s or 1m. Defaults to the scrape interval of Prometheus.
	// +optional
	// +kubebuilder:validation:MaxLength=8
	// +kubebuilder:validation:XValidation:rule="self.matches('^[1-9][0-9]{0,3}[sm]$')",message="interval must be a number of seconds or minutes, for example 30s or 1m"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^[1-4]s$')",message="interval must be at least 5s; write for example 15s"
	Interval string `json:"interval,omitempty"`
}

// Alerts configures the PrometheusRule of an instance.
type Alerts struct {
	// labels of the PrometheusRule, at most 16, for example to match the selector of a
	// Prometheus.
	// +optional
	// +kubebuilder:validation:MaxProperties=16
	Labels map[string]string `json:"labels,omitempty"`

	// errorPercent is the percentage of a server's responses with a status of 500 or more, between
	// 1 and 100, above which NginxErrorRatioHigh fires. It has an effect with requestMetrics.
	// Defaults to 5.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	ErrorPercent *int32 `json:"errorPercent,omitempty"`

	// latencyMilliseconds is the duration in milliseconds, between 1 and 9999, above which
	// NginxLatencyHigh fires if 1 percent of a server's requests take longer. It has an effect with
	// requestMetrics. Defaults to 1000.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=9999
	LatencyMilliseconds *int32 `json:"latencyMilliseconds,omitempty"`
}
