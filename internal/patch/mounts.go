package patch

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/assets"
)

// Mount is a volume that patches mount in the nginx container.
type Mount struct {
	// Path is the mount path, and Volume the name of the volume.
	Path, Volume string
	// ReadOnly reports whether the mount is read-only.
	ReadOnly bool
	// Source is the source of the volume, or nil if neither a patch nor the asset of the Deployment
	// declares it.
	Source *corev1.VolumeSource
}

// Mounts returns the volumes that patches mount in the nginx container. It applies the patches to
// the asset of the Deployment, because only the spec is known. It returns an error if that fails,
// for example because a patch refers to a part that the asset does not have.
func Mounts(patches []v1alpha2.Patch) (mounts []Mount, err error) {
	of := slices.DeleteFunc(slices.Clone(patches), func(patch v1alpha2.Patch) bool { return patch.Target.Kind != "Deployment" })
	if !slices.ContainsFunc(of, func(patch v1alpha2.Patch) bool { return strings.Contains(patch.Patch, "volumeMounts") }) {
		return nil, nil
	}

	defer func() {
		if failure := recover(); failure != nil {
			mounts, err = nil, fmt.Errorf("kustomize failed: %v", failure)
		}
	}()
	ready, errs := parse(of, field.NewPath("patches"))
	if len(errs) > 0 {
		return nil, errs.ToAggregate()
	}
	base := assets.Deployment()
	before, err := runtime.DefaultUnstructuredConverter.ToUnstructured(base)
	if err != nil {
		return nil, err
	}
	raw, err := merge(ready, before)
	if err != nil {
		return nil, err
	}
	patched := &appsv1.Deployment{}
	if _, err := decode(raw, patched); err != nil {
		return nil, err
	}
	return mountsIn(&patched.Spec.Template.Spec, base.Spec.Template.Spec.Containers[0].VolumeMounts)
}

// mountsIn returns the mounts of the nginx container, without those of the operator.
func mountsIn(pod *corev1.PodSpec, own []corev1.VolumeMount) ([]Mount, error) {
	at := slices.IndexFunc(pod.Containers, func(container corev1.Container) bool { return container.Name == nginxContainer })
	if at < 0 {
		return nil, errors.New("there is no container nginx")
	}
	var out []Mount
	for _, mount := range pod.Containers[at].VolumeMounts {
		if slices.ContainsFunc(own, func(other corev1.VolumeMount) bool { return other.MountPath == mount.MountPath }) {
			continue
		}
		one := Mount{Path: mount.MountPath, Volume: mount.Name, ReadOnly: mount.ReadOnly}
		for i := range pod.Volumes {
			if pod.Volumes[i].Name == mount.Name {
				one.Source = &pod.Volumes[i].VolumeSource
			}
		}
		out = append(out, one)
	}
	return out, nil
}
