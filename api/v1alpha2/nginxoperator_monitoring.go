package v1alpha2

// Values of spec.monitoring.exporter.
const (
	// ExporterSidecar runs nginx-prometheus-exporter in each Pod.
	ExporterSidecar ExporterMode = "Sidecar"
	// ExporterNone runs no exporter: nginx shows its figures to the containers of its Pod only.
	ExporterNone ExporterMode = "None"
)

// ExporterMode says who makes Prometheus metrics of the figures of nginx.
// +kubebuilder:validation:Enum=Sidecar;None
type ExporterMode string

// Monitoring has nginx show its figures (stub_status), and has them collected.
// +kubebuilder:validation:XValidation:rule="!has(self.exporter) || self.exporter != 'None' || !(has(self.image) || has(self.resources) || has(self.podMonitor) || has(self.alerts))",message="with exporter None there are no metrics of the operator's making; remove image, resources, podMonitor and alerts, or use exporter Sidecar"
type Monitoring struct {
	// enabled switches all of it on. Defaults to true where monitoring is given.
	// +optional
	Enabled *bool `json:"enabled,omitempty"`

	// exporter Sidecar runs nginx-prometheus-exporter in each Pod, which serves metrics on port 9113, or the next one on which nginx
	// does not listen. With None nginx shows its figures at http://127.0.0.1:18081/stub_status, for an exporter of your own in
	// spec.sidecars. Defaults to Sidecar.
	// +optional
	Exporter ExporterMode `json:"exporter,omitempty"`

	// image is the container image of the exporter. Defaults to the one that the operator's release pins.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Image string `json:"image,omitempty"`

	// resources are the compute resources of the exporter. Defaults to requests of cpu 5m and memory 16Mi and no limits; what is
	// given replaces all of the default.
	// +optional
	Resources *ContainerResources `json:"resources,omitempty"`

	// podMonitor keeps a PodMonitor (monitoring.coreos.com/v1), by which the Prometheus Operator finds the metrics. The cluster has to
	// have that API. Defaults to none.
	// +optional
	PodMonitor *PodMonitor `json:"podMonitor,omitempty"`

	// alerts keeps a PrometheusRule (monitoring.coreos.com/v1) with alerts on the metrics. The cluster has to have that API. Defaults
	// to none.
	// +optional
	Alerts *Alerts `json:"alerts,omitempty"`
}

// PodMonitor says how the PodMonitor of an instance looks.
type PodMonitor struct {
	// labels of the PodMonitor, at most 16, for example those by which a Prometheus selects it.
	// +optional
	// +kubebuilder:validation:MaxProperties=16
	Labels map[string]string `json:"labels,omitempty"`

	// interval is the time between two scrapes, in seconds or minutes, for example 30s or 1m. Defaults to that of Prometheus.
	// +optional
	// +kubebuilder:validation:MaxLength=8
	// +kubebuilder:validation:XValidation:rule="self.matches('^[1-9][0-9]{0,3}[sm]$')",message="interval must be a number of seconds or minutes, for example 30s or 1m"
	Interval string `json:"interval,omitempty"`
}

// Alerts says how the PrometheusRule of an instance looks.
type Alerts struct {
	// labels of the PrometheusRule, at most 16, for example those by which a Prometheus selects it.
	// +optional
	// +kubebuilder:validation:MaxProperties=16
	Labels map[string]string `json:"labels,omitempty"`
}
