package defaults

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/api/v1alpha2"
)

// Default ports: of nginx-prometheus-exporter, of the metrics of requests, and, over UDP, of the log
// from which these are counted.
const (
	firstMetricsPort        int32 = 9113
	firstRequestMetricsPort int32 = 9114
	firstRequestLogPort     int32 = 9514
)

// Thresholds of the alerts about requests.
const (
	defaultErrorPercent        int32 = 5
	defaultLatencyMilliseconds int32 = 1_000
)

// IsMonitored reports whether nginx serves stub_status.
func IsMonitored(spec *v1alpha2.NginxOperatorSpec) bool {
	return spec.Monitoring != nil && ptr.Deref(spec.Monitoring.Enabled, true)
}

// HasExporter reports whether the operator's exporter runs next to nginx.
func HasExporter(spec *v1alpha2.NginxOperatorSpec) bool {
	return IsMonitored(spec) && spec.Monitoring.Exporter != v1alpha2.ExporterNone
}

// ExporterImage returns the container image of the exporter, or "" if there is none. The default is
// the image of the release: RELATED_IMAGE_NGINX_PROMETHEUS_EXPORTER in config/manager/manager.yaml.
func ExporterImage(spec *v1alpha2.NginxOperatorSpec, release string) string {
	if !HasExporter(spec) {
		return ""
	}
	return cmp.Or(spec.Monitoring.Image, release)
}

// ExporterResources returns the compute resources of the exporter. A value replaces the whole
// default, which has requests because an autoscaler requires them for each container.
func ExporterResources(spec *v1alpha2.NginxOperatorSpec) corev1.ResourceRequirements {
	return resourcesOr(spec.Monitoring.Resources, corev1.ResourceRequirements{Requests: corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("5m"), corev1.ResourceMemory: resource.MustParse("16Mi"),
	}})
}

func resourcesOr(declared *v1alpha2.ContainerResources, otherwise corev1.ResourceRequirements) corev1.ResourceRequirements {
	if declared == nil {
		return otherwise
	}
	return corev1.ResourceRequirements{Limits: declared.Limits.DeepCopy(), Requests: declared.Requests.DeepCopy()}
}

// HasRequestMetrics reports whether the operator's receiver counts the requests.
func HasRequestMetrics(spec *v1alpha2.NginxOperatorSpec) bool {
	return HasExporter(spec) && spec.Monitoring.RequestMetrics != nil
}

// RequestMetricsResources returns the compute resources of the receiver. A CPU limit would lose
// messages.
func RequestMetricsResources(spec *v1alpha2.NginxOperatorSpec) corev1.ResourceRequirements {
	return resourcesOr(spec.Monitoring.RequestMetrics.Resources, corev1.ResourceRequirements{
		Requests: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("16Mi"),
		},
		Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("64Mi")},
	})
}

// Alerts returns the settings of the alerts of a spec that declares them.
func Alerts(spec *v1alpha2.NginxOperatorSpec) v1alpha2.Alerts {
	out := *spec.Monitoring.Alerts.DeepCopy()
	out.ErrorPercent = ptr.To(ptr.Deref(out.ErrorPercent, defaultErrorPercent))
	out.LatencyMilliseconds = ptr.To(ptr.Deref(out.LatencyMilliseconds, defaultLatencyMilliseconds))
	return out
}

// StatusPort returns the port of stub_status within the Pod, or 0 if monitoring is off. It is the
// first port after HealthPort that the spec does not use.
func StatusPort(spec *v1alpha2.NginxOperatorSpec) int32 {
	if !IsMonitored(spec) {
		return 0
	}
	return firstFree(HealthPort(spec)+1, ListenPorts(spec))
}

// MetricsPort returns the port of the exporter, which is the first port from 9113 up that the spec
// does not use. It returns 0 if the instance has no exporter.
func MetricsPort(spec *v1alpha2.NginxOperatorSpec) int32 {
	if !HasExporter(spec) {
		return 0
	}
	return firstFree(firstMetricsPort, ListenPorts(spec))
}

// RequestMetricsPort returns the port of the metrics of requests, which is the first port from 9114
// up that neither the spec nor the exporter uses. It returns 0 without request metrics.
func RequestMetricsPort(spec *v1alpha2.NginxOperatorSpec) int32 {
	if !HasRequestMetrics(spec) {
		return 0
	}
	return firstFree(firstRequestMetricsPort, append(ListenPorts(spec), MetricsPort(spec)))
}

// RequestLogPort returns the UDP port to which nginx logs its requests, which is the first port from
// 9514 up that the spec does not use. It returns 0 without request metrics.
func RequestLogPort(spec *v1alpha2.NginxOperatorSpec) int32 {
	if !HasRequestMetrics(spec) {
		return 0
	}
	return firstFree(firstRequestLogPort, ListenPorts(spec))
}

// firstFree returns the first free port. The bounds of the spec guarantee that one exists.
func firstFree(port int32, taken []int32) int32 {
	for slices.Contains(taken, port) {
		port++
	}
	return port
}
