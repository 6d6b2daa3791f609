// Package defaults says what a spec means: it answers for each field that may be left out what holds then. Admission,
// the controller and the conversion ask it, so that none has an opinion of its own.
package defaults

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/api/v1alpha2"
)

// firstHealthPort is where the operator's own server for probes listens, unless the user's servers do.
const firstHealthPort int32 = 18080

// Replicas returns the number of operands.
func Replicas(spec *v1alpha2.NginxOperatorSpec) int32 {
	return ptr.Deref(spec.Replicas, v1alpha2.DefaultReplicas)
}

// Autoscaling returns the bounds, targets and behavior of a spec that declares autoscaling.
func Autoscaling(spec *v1alpha2.NginxOperatorSpec) v1alpha2.Autoscaling {
	out := *spec.Autoscaling.DeepCopy()
	out.MinReplicas = ptr.To(ptr.Deref(out.MinReplicas, v1alpha2.DefaultMinReplicas))
	if out.TargetCPUUtilizationPercentage == nil && out.TargetMemoryUtilizationPercentage == nil {
		out.TargetCPUUtilizationPercentage = ptr.To(v1alpha2.DefaultTargetCPUUtilization)
	}
	return out
}

// Image returns the container image of the operands. The default is that of the release, which is RELATED_IMAGE_NGINX in
// config/manager/manager.yaml.
func Image(spec *v1alpha2.NginxOperatorSpec, release string) string {
	return cmp.Or(spec.Image, release)
}

// Ports returns the ports for plain HTTP, none where the spec has an empty list of them.
func Ports(spec *v1alpha2.NginxOperatorSpec) []v1alpha2.Port {
	if spec.Ports != nil {
		return spec.Ports
	}
	return []v1alpha2.Port{{Name: v1alpha2.DefaultPortName, Port: v1alpha2.DefaultPort, Protocol: corev1.ProtocolTCP}}
}

// TLS returns the certificates, with the port of the first where it is not given and the operator's own server uses it.
func TLS(spec *v1alpha2.NginxOperatorSpec) []v1alpha2.TLS {
	given := func(tls v1alpha2.TLS) bool { return tls.Port != nil || tls.TargetPort != nil || tls.NodePort != nil }
	if len(spec.TLS) == 0 || spec.Config != nil || slices.ContainsFunc(spec.TLS, given) {
		return spec.TLS
	}
	out := slices.Clone(spec.TLS)
	out[0].Port = ptr.To(v1alpha2.DefaultTLSPort)
	return out
}

// HealthPort returns the port of the operator's own server for the kubelet's probes: the first from 18080 on that the
// spec does not let nginx listen on.
func HealthPort(spec *v1alpha2.NginxOperatorSpec) int32 {
	return firstFree(firstHealthPort, ListenPorts(spec))
}

// ServiceType returns the type of the Service.
func ServiceType(spec *v1alpha2.NginxOperatorSpec) corev1.ServiceType {
	if spec.Service == nil || spec.Service.Type == "" {
		return corev1.ServiceTypeClusterIP
	}
	return spec.Service.Type
}

// HasNetworkPolicy reports whether the operator keeps a NetworkPolicy for the operands.
func HasNetworkPolicy(spec *v1alpha2.NginxOperatorSpec) bool {
	return spec.NetworkPolicy == nil || spec.NetworkPolicy.Mode != v1alpha2.NetworkPolicyNone
}

// IngressPaths returns the prefixes of the paths of a host; there is at least one.
func IngressPaths(host v1alpha2.IngressHost) []string {
	if len(host.Paths) > 0 {
		return host.Paths
	}
	return []string{"/"}
}

// Resources returns the compute resources of the nginx container; what is given replaces all of the default.
func Resources(spec *v1alpha2.NginxOperatorSpec) corev1.ResourceRequirements {
	if spec.Resources != nil {
		return *spec.Resources.DeepCopy()
	}
	return corev1.ResourceRequirements{Requests: corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("32Mi"),
	}}
}

// Drain is what follows from drainSeconds: the three times are one after the other, each in seconds.
type Drain struct {
	// PreStop is how long a Pod that is being deleted goes on as if nothing had happened: the time that the cluster needs to
	// take it out of every endpoint list, before nginx stops to listen.
	PreStop int64
	// WorkerShutdown is how long nginx then ends what it has begun (worker_shutdown_timeout).
	WorkerShutdown int64
	// GracePeriod is the Pod's terminationGracePeriodSeconds: both, and 5 seconds for the process to end.
	GracePeriod int64
}

// DrainOf returns the times of the drain.
func DrainOf(spec *v1alpha2.NginxOperatorSpec) Drain {
	total := int64(ptr.Deref(spec.DrainSeconds, v1alpha2.DefaultDrainSeconds))
	preStop := min(5, total-1)
	return Drain{PreStop: preStop, WorkerShutdown: total - preStop, GracePeriod: total + 5}
}

// Nginx returns the tuning of nginx; workerProcesses is nil where it follows from the processors.
func Nginx(spec *v1alpha2.NginxOperatorSpec) v1alpha2.Nginx {
	declared := ptr.Deref(spec.Nginx, v1alpha2.Nginx{})
	return v1alpha2.Nginx{
		WorkerProcesses:   declared.WorkerProcesses,
		WorkerConnections: ptr.To(ptr.Deref(declared.WorkerConnections, v1alpha2.DefaultWorkerConnections)),
		ErrorLogLevel:     cmp.Or(declared.ErrorLogLevel, v1alpha2.DefaultErrorLogLevel),
		AccessLog:         ptr.To(ptr.Deref(declared.AccessLog, true)),
	}
}

// Rollout is how a change reaches the Pods.
type Rollout struct {
	// MaxSurge is how many Pods may exist above the replicas, MaxUnavailable how many replicas may be missing.
	MaxSurge, MaxUnavailable intstr.IntOrString
	// ProgressDeadlineSeconds is how long a rollout may make no progress until it counts as failed.
	ProgressDeadlineSeconds int32
	// AutomaticRollback: what fails is taken back.
	AutomaticRollback bool
}

// RolloutOf returns how changes reach the Pods. By default a Pod goes once its successor serves.
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
	if reference.Key == "" {
		return v1alpha2.DefaultConfigKey
	}
	return reference.Key
}
