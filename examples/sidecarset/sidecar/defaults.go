package sidecar

import (
	"cmp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/examples/sidecarset/api/v1alpha1"
)

// Default fills in, in place, what the API server would fill into a Pod, so that a SidecarSet shows what its Pods will have
// and the comparison with a Pod does not find differences that nobody made. A field that is set stays.
func Default(spec *v1alpha1.SidecarSetSpec) {
	for i := range spec.Containers {
		defaultContainer(&spec.Containers[i])
	}
	for i := range spec.Volumes {
		defaultVolume(&spec.Volumes[i])
	}
}

func defaultContainer(container *corev1.Container) {
	container.TerminationMessagePath = cmp.Or(container.TerminationMessagePath, corev1.TerminationMessagePathDefault)
	container.TerminationMessagePolicy = cmp.Or(container.TerminationMessagePolicy, corev1.TerminationMessageReadFile)
	container.ImagePullPolicy = cmp.Or(container.ImagePullPolicy, pullPolicy(container.Image))
	for i := range container.Ports {
		container.Ports[i].Protocol = cmp.Or(container.Ports[i].Protocol, corev1.ProtocolTCP)
	}
	for i := range container.Env {
		if source := container.Env[i].ValueFrom; source != nil && source.FieldRef != nil {
			source.FieldRef.APIVersion = cmp.Or(source.FieldRef.APIVersion, "v1")
		}
	}
	defaultRequests(&container.Resources)
	for _, probe := range []*corev1.Probe{container.LivenessProbe, container.ReadinessProbe, container.StartupProbe} {
		defaultProbe(probe)
	}
	if container.Lifecycle != nil {
		for _, handler := range []*corev1.LifecycleHandler{container.Lifecycle.PostStart, container.Lifecycle.PreStop} {
			if handler != nil {
				defaultHTTPGet(handler.HTTPGet)
			}
		}
	}
}

// pullPolicy returns Always for an image that may be another one tomorrow under the same name: without a tag or digest, or
// with the tag latest.
func pullPolicy(image string) corev1.PullPolicy {
	if strings.Contains(image, "@") {
		return corev1.PullIfNotPresent
	}
	_, tag, tagged := strings.Cut(image[strings.LastIndex(image, "/")+1:], ":")
	if !tagged || tag == "latest" {
		return corev1.PullAlways
	}
	return corev1.PullIfNotPresent
}

// defaultRequests: what is limited and not requested is requested as it is limited.
func defaultRequests(resources *corev1.ResourceRequirements) {
	for name, limit := range resources.Limits {
		if _, requested := resources.Requests[name]; requested {
			continue
		}
		if resources.Requests == nil {
			resources.Requests = corev1.ResourceList{}
		}
		resources.Requests[name] = limit.DeepCopy()
	}
}

func defaultProbe(probe *corev1.Probe) {
	if probe == nil {
		return
	}
	probe.TimeoutSeconds = cmp.Or(probe.TimeoutSeconds, 1)
	probe.PeriodSeconds = cmp.Or(probe.PeriodSeconds, 10)
	probe.SuccessThreshold = cmp.Or(probe.SuccessThreshold, 1)
	probe.FailureThreshold = cmp.Or(probe.FailureThreshold, 3)
	defaultHTTPGet(probe.HTTPGet)
	if probe.GRPC != nil && probe.GRPC.Service == nil {
		probe.GRPC.Service = ptr.To("")
	}
}

func defaultHTTPGet(action *corev1.HTTPGetAction) {
	if action != nil {
		action.Path = cmp.Or(action.Path, "/")
		action.Scheme = cmp.Or(action.Scheme, corev1.URISchemeHTTP)
	}
}

func defaultVolume(volume *corev1.Volume) {
	if sources(volume) == 0 {
		volume.EmptyDir = &corev1.EmptyDirVolumeSource{}
	}
	const readable int32 = 0o644
	mode := func(mode **int32) {
		if *mode == nil {
			*mode = ptr.To(readable)
		}
	}
	switch {
	case volume.HostPath != nil && volume.HostPath.Type == nil:
		volume.HostPath.Type = ptr.To(corev1.HostPathUnset)
	case volume.ConfigMap != nil:
		mode(&volume.ConfigMap.DefaultMode)
	case volume.Secret != nil:
		mode(&volume.Secret.DefaultMode)
	case volume.DownwardAPI != nil:
		mode(&volume.DownwardAPI.DefaultMode)
		defaultFieldRefs(volume.DownwardAPI.Items)
	case volume.Projected != nil:
		mode(&volume.Projected.DefaultMode)
		for i := range volume.Projected.Sources {
			source := &volume.Projected.Sources[i]
			if source.DownwardAPI != nil {
				defaultFieldRefs(source.DownwardAPI.Items)
			}
			if token := source.ServiceAccountToken; token != nil && token.ExpirationSeconds == nil {
				token.ExpirationSeconds = ptr.To[int64](3600)
			}
		}
	}
}

func defaultFieldRefs(files []corev1.DownwardAPIVolumeFile) {
	for i := range files {
		if files[i].FieldRef != nil {
			files[i].FieldRef.APIVersion = cmp.Or(files[i].FieldRef.APIVersion, "v1")
		}
	}
}
