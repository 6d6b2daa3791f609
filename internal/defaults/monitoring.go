package defaults

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/api/v1alpha2"
)

// firstMetricsPort is where nginx-prometheus-exporter listens by its own default.
const firstMetricsPort int32 = 9113

// IsMonitored reports whether nginx shows its figures.
func IsMonitored(spec *v1alpha2.NginxOperatorSpec) bool {
	return spec.Monitoring != nil && ptr.Deref(spec.Monitoring.Enabled, true)
}

// HasExporter reports whether the operator's exporter runs beside nginx.
func HasExporter(spec *v1alpha2.NginxOperatorSpec) bool {
	return IsMonitored(spec) && spec.Monitoring.Exporter != v1alpha2.ExporterNone
}

// ExporterImage returns the container image of the exporter, "" where there is none. The default is that of the release, which is
// RELATED_IMAGE_NGINX_PROMETHEUS_EXPORTER in config/manager/manager.yaml.
func ExporterImage(spec *v1alpha2.NginxOperatorSpec, release string) string {
	if !HasExporter(spec) {
		return ""
	}
	return cmp.Or(spec.Monitoring.Image, release)
}

// ExporterResources returns the compute resources of the exporter; what is given replaces all of the default. An autoscaler needs a
// request of each container.
func ExporterResources(spec *v1alpha2.NginxOperatorSpec) corev1.ResourceRequirements {
	if declared := spec.Monitoring.Resources; declared != nil {
		return corev1.ResourceRequirements{Limits: declared.Limits.DeepCopy(), Requests: declared.Requests.DeepCopy()}
	}
	return corev1.ResourceRequirements{Requests: corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("5m"), corev1.ResourceMemory: resource.MustParse("16Mi"),
	}}
}

// StatusPort returns the port on which nginx shows its figures to the other containers of its Pod, 0 where it does not: the first behind
// HealthPort that the spec does not let nginx listen on.
func StatusPort(spec *v1alpha2.NginxOperatorSpec) int32 {
	if !IsMonitored(spec) {
		return 0
	}
	return firstFree(HealthPort(spec)+1, ListenPorts(spec))
}

// MetricsPort returns the port of the exporter, 0 where there is none: the first from 9113 on that the spec does not let nginx listen on.
func MetricsPort(spec *v1alpha2.NginxOperatorSpec) int32 {
	if !HasExporter(spec) {
		return 0
	}
	return firstFree(firstMetricsPort, ListenPorts(spec))
}

// firstFree returns the first port from one on that is not taken. There are far fewer than would fill the range.
func firstFree(port int32, taken []int32) int32 {
	for slices.Contains(taken, port) {
		port++
	}
	return port
}
