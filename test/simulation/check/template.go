package check

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/api/v1alpha2"
)

const (
	// defaultImages is the prefix of the default images of all releases.
	defaultImages = "registry.example/nginx:"
	// note is the annotation that specs set on Pods and Services.
	note = "example.com/note"
)

// pods is the part of a Pod template that only the spec determines: neither the release, running
// Pods, nor the content of referenced objects.
type pods struct {
	Image, Redeploy, Note string
	Grace                 int64
	Env, Volumes          []string
}

func (p pods) String() string {
	if strings.HasPrefix(p.Image, defaultImages) {
		p.Image = ""
	}
	slices.Sort(p.Volumes)
	return textOf(p)
}

// DeclaredPods returns the Pods of a spec, in the form of TemplatePods.
func DeclaredPods(spec *v1alpha2.NginxOperatorSpec) string {
	out := pods{
		Image: spec.Image, Redeploy: spec.ForceRedeploy, Note: ptr.Deref(spec.PodTemplate, v1alpha2.PodTemplate{}).Annotations[note],
		Grace: int64(ptr.Deref(spec.DrainSeconds, v1alpha2.DefaultDrainSeconds)) + 5,
	}
	for _, variable := range spec.Env {
		out.Env = append(out.Env, variable.Name+"="+variable.Value)
	}
	for _, volume := range spec.Volumes {
		out.Volumes = append(out.Volumes, volume.Name)
	}
	for _, tls := range spec.TLS {
		out.Volumes = append(out.Volumes, "secret/"+tls.SecretName)
	}
	if spec.Content != nil {
		out.Volumes = append(out.Volumes, "content")
	}
	return out.String()
}

// TemplatePods returns the Pods of a Pod template. Templates of the same spec have the same Pods.
func TemplatePods(template *corev1.PodTemplateSpec) string {
	nginx := template.Spec.Containers[0]
	out := pods{
		Image: nginx.Image, Redeploy: template.Annotations["operator.example.com/force-redeploy"], Note: template.Annotations[note],
		Grace: ptr.Deref(template.Spec.TerminationGracePeriodSeconds, 0),
	}
	for _, variable := range nginx.Env {
		out.Env = append(out.Env, variable.Name+"="+variable.Value)
	}
	for _, volume := range template.Spec.Volumes {
		switch {
		case volume.Secret != nil:
			out.Volumes = append(out.Volumes, "secret/"+volume.Secret.SecretName)
		case volume.Projected != nil, volume.Name == "content":
			out.Volumes = append(out.Volumes, volume.Name)
		}
	}
	return out.String()
}

// MountedConfigMaps returns the names of the ConfigMaps that a Pod mounts.
func MountedConfigMaps(pod *corev1.PodSpec) (out []string) {
	for _, volume := range pod.Volumes {
		if volume.ConfigMap != nil {
			out = append(out, volume.ConfigMap.Name)
		}
		for _, source := range ptr.Deref(volume.Projected, corev1.ProjectedVolumeSource{}).Sources {
			if source.ConfigMap != nil {
				out = append(out, source.ConfigMap.Name)
			}
		}
	}
	return out
}
