// Package defaults returns the effective value of each optional field of a spec, for admission, the
// controller, and the conversion.
package defaults

import (
	"cmp"
	"regexp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/api/v1alpha2"
)

// firstHealthPort is the port of the operator's health server, unless the user's servers use it.
const firstHealthPort int32 = 18080

// Replicas returns the number of Pods.
func Replicas(spec *v1alpha2.NginxOperatorSpec) int32 {
	return ptr.Deref(spec.Replicas, v1alpha2.DefaultReplicas)
}

// Autoscaling returns the bounds, targets, and behavior of a spec with autoscaling.
func Autoscaling(spec *v1alpha2.NginxOperatorSpec) v1alpha2.Autoscaling {
	out := *spec.Autoscaling.DeepCopy()
	out.MinReplicas = ptr.To(ptr.Deref(out.MinReplicas, v1alpha2.DefaultMinReplicas))
	if out.TargetCPUUtilizationPercentage == nil && out.TargetMemoryUtilizationPercentage == nil {
		out.TargetCPUUtilizationPercentage = ptr.To(v1alpha2.DefaultTargetCPUUtilization)
	}
	return out
}

// Image returns the container image of NGINX. The default is the image of the release:
// RELATED_IMAGE_NGINX in config/manager/manager.yaml.
func Image(spec *v1alpha2.NginxOperatorSpec, release string) string {
	return cmp.Or(spec.Image, release)
}

// Ports returns the plain HTTP ports. An empty list in the spec stays empty.
func Ports(spec *v1alpha2.NginxOperatorSpec) []v1alpha2.Port {
	if spec.Ports != nil {
		return spec.Ports
	}
	return []v1alpha2.Port{{Name: v1alpha2.DefaultPortName, Port: v1alpha2.DefaultPort, Protocol: corev1.ProtocolTCP}}
}

// TLS returns the certificates. Without spec.config, the first certificate has a default port.
func TLS(spec *v1alpha2.NginxOperatorSpec) []v1alpha2.TLS {
	if spec.Config != nil || !hasDefaultPort(spec.TLS) {
		return spec.TLS
	}
	return withDefaultPort(spec.TLS)
}

// KeepTLS returns the certificates of a spec that replaces another one. If it adds a spec.config,
// the first certificate keeps its default port, so that the Service still has the port.
func KeepTLS(old, spec *v1alpha2.NginxOperatorSpec) []v1alpha2.TLS {
	if old.Config != nil || spec.Config == nil || !hasDefaultPort(old.TLS) || !hasDefaultPort(spec.TLS) ||
		old.TLS[0].SecretName != spec.TLS[0].SecretName {
		return spec.TLS
	}
	return withDefaultPort(spec.TLS)
}

// hasDefaultPort reports whether the first certificate has the default port without spec.config.
func hasDefaultPort(tls []v1alpha2.TLS) bool {
	given := func(tls v1alpha2.TLS) bool { return tls.Port != nil || tls.TargetPort != nil || tls.NodePort != nil }
	return len(tls) > 0 && !slices.ContainsFunc(tls, given)
}

func withDefaultPort(tls []v1alpha2.TLS) []v1alpha2.TLS {
	out := slices.Clone(tls)
	out[0].Port = ptr.To(v1alpha2.DefaultTLSPort)
	return out
}

// HealthPort returns the port of the health server for the kubelet's probes: the first port from
// 18080 up that the spec does not use.
func HealthPort(spec *v1alpha2.NginxOperatorSpec) int32 {
	return firstFree(firstHealthPort, ListenPorts(spec))
}

// ServiceType returns the type of the Service.
func ServiceType(spec *v1alpha2.NginxOperatorSpec) corev1.ServiceType {
	return cmp.Or(ptr.Deref(spec.Service, v1alpha2.Service{}).Type, corev1.ServiceTypeClusterIP)
}

// HasNetworkPolicy reports whether the operator creates a NetworkPolicy.
func HasNetworkPolicy(spec *v1alpha2.NginxOperatorSpec) bool {
	return spec.NetworkPolicy == nil || spec.NetworkPolicy.Mode != v1alpha2.NetworkPolicyNone
}

// IngressPaths returns the path prefixes of a host, at least one.
func IngressPaths(host v1alpha2.IngressHost) []string {
	if len(host.Paths) > 0 {
		return host.Paths
	}
	return []string{"/"}
}

// Resources returns the resources of the nginx container. A value replaces the whole default.
func Resources(spec *v1alpha2.NginxOperatorSpec) corev1.ResourceRequirements {
	if spec.Resources != nil {
		return *spec.Resources.DeepCopy()
	}
	return corev1.ResourceRequirements{Requests: corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("32Mi"),
	}}
}

// Drain has the times that drainSeconds determines, in seconds.
type Drain struct {
	// PreStop is the time that a deleted Pod keeps serving, until endpoint lists lack it.
	PreStop int64
	// WorkerShutdown is the time that nginx then has to finish requests (worker_shutdown_timeout).
	WorkerShutdown int64
	// GracePeriod is terminationGracePeriodSeconds: both times, and 5 seconds for the exit.
	GracePeriod int64
}

// DrainOf returns the times of the drain.
func DrainOf(spec *v1alpha2.NginxOperatorSpec) Drain {
	total := int64(ptr.Deref(spec.DrainSeconds, v1alpha2.DefaultDrainSeconds))
	preStop := min(5, total-1)
	return Drain{PreStop: preStop, WorkerShutdown: total - preStop, GracePeriod: total + 5}
}

// ErrorLogLevels are the severities that the schema allows.
var ErrorLogLevels = []string{"debug", "info", "notice", "warn", "error", "crit", "alert", "emerg"}

// Nginx returns the tuning of nginx. workerProcesses is nil if it depends on the CPUs. It ignores
// an errorLogLevel that the schema does not allow, because 0.5.0 could store one through v1alpha1.
func Nginx(spec *v1alpha2.NginxOperatorSpec) v1alpha2.Nginx {
	declared := ptr.Deref(spec.Nginx, v1alpha2.Nginx{})
	if !slices.Contains(ErrorLogLevels, declared.ErrorLogLevel) {
		declared.ErrorLogLevel = ""
	}
	return v1alpha2.Nginx{
		WorkerProcesses:   declared.WorkerProcesses,
		WorkerConnections: ptr.To(ptr.Deref(declared.WorkerConnections, v1alpha2.DefaultWorkerConnections)),
		ErrorLogLevel:     cmp.Or(declared.ErrorLogLevel, v1alpha2.DefaultErrorLogLevel),
		AccessLog:         ptr.To(ptr.Deref(declared.AccessLog, true)),
		Main:              declared.Main,
		Events:            declared.Events,
		Modules:           declared.Modules,
		Resolver:          declared.Resolver,
	}
}

// Rollout has the settings of rolling updates.
type Rollout struct {
	// MaxSurge is the number of Pods above replicas, and MaxUnavailable that of unavailable replicas.
	MaxSurge, MaxUnavailable intstr.IntOrString
	// ProgressDeadlineSeconds is the time after which a rollout without progress fails.
	ProgressDeadlineSeconds int32
	// AutomaticRollback rolls back failed changes.
	AutomaticRollback bool
}

// RolloutOf returns the settings of rolling updates. By default, a Pod is removed after its
// replacement is ready.
func RolloutOf(spec *v1alpha2.NginxOperatorSpec) Rollout {
	declared := ptr.Deref(spec.Rollout, v1alpha2.Rollout{})
	return Rollout{
		MaxSurge:                ptr.Deref(declared.MaxSurge, intstr.FromString("25%")),
		MaxUnavailable:          ptr.Deref(declared.MaxUnavailable, intstr.FromInt32(0)),
		ProgressDeadlineSeconds: ptr.Deref(declared.ProgressDeadlineSeconds, v1alpha2.DefaultProgressDeadlineSeconds),
		AutomaticRollback:       ptr.Deref(declared.AutomaticRollback, true),
	}
}

// ConfigKey returns the key of a reference.
func ConfigKey(reference *v1alpha2.ConfigMapKeyReference) string {
	return cmp.Or(reference.Key, v1alpha2.DefaultConfigKey)
}

// cacheSize is the pattern of the schema. Matching quantities are cheap to compute with.
var cacheSize = regexp.MustCompile(`^[1-9][0-9]{0,4}[MG]i?$`)

// CachePath returns the mount path of the cache volume.
func CachePath(cache *v1alpha2.Cache) string {
	return cmp.Or(cache.Path, v1alpha2.DefaultCachePath)
}

// CacheSize returns the size of the cache volume, and whether it is valid.
func CacheSize(cache *v1alpha2.Cache) (resource.Quantity, bool) {
	if !cacheSize.MatchString(cache.Size) {
		return resource.Quantity{}, false
	}
	return resource.MustParse(cache.Size), true
}

// CacheMedium returns the storage medium of the cache volume.
func CacheMedium(cache *v1alpha2.Cache) corev1.StorageMedium {
	if cache.InMemory {
		return corev1.StorageMediumMemory
	}
	return corev1.StorageMediumDefault
}
