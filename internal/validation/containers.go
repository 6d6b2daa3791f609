package validation

import (
	"regexp"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/defaults"
	"github.com/example/nginx-operator/internal/wellknown"
)

// validateContainers validates init containers and sidecars. Their names must differ from each
// other and from the operator's containers.
func validateContainers(spec *v1alpha2.NginxOperatorSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	volumes, names := sets.New[string](), sets.New(wellknown.OperandContainer)
	if defaults.HasExporter(spec) {
		names.Insert(wellknown.ExporterContainer)
	}
	for _, volume := range spec.Volumes {
		volumes.Insert(volume.Name)
	}

	for _, list := range []struct {
		name       string
		containers []v1alpha2.Container
	}{{"initContainers", spec.InitContainers}, {"sidecars", spec.Sidecars}} {
		for i := range list.containers {
			container, at := &list.containers[i], path.Child(list.name).Index(i)
			for _, message := range utilvalidation.IsDNS1123Label(container.Name) {
				errs = append(errs, field.Invalid(at.Child("name"), bounded(container.Name), message))
			}
			if names.Has(container.Name) {
				errs = append(errs, field.Duplicate(at.Child("name"), bounded(container.Name)))
			}

			names.Insert(container.Name)
			errs = append(errs, validateContainer(container, volumes, at)...)
		}
	}
	return errs
}

func validateContainer(container *v1alpha2.Container, volumes sets.Set[string], at *field.Path) field.ErrorList {
	errs := validateImage(container.Image, at.Child("image"))
	errs = append(errs, validateEnv(container.Env, at.Child("env"))...)
	if resources := container.Resources; resources != nil {
		errs = append(errs, validateResources(&corev1.ResourceRequirements{Limits: resources.Limits, Requests: resources.Requests},
			at.Child("resources"))...)
	}

	mounts := at.Child("volumeMounts")
	for i, mount := range container.VolumeMounts {
		if !volumes.Has(mount.Name) {
			errs = append(errs, field.Invalid(mounts.Index(i).Child("name"), bounded(mount.Name),
				"is not a volume in spec.volumes; add the volume, or correct the name"))
		}
		errs = append(errs, validateMount(mount.MountPath, mount.SubPath, mounts.Index(i))...)
	}
	return errs
}

// variableName matches names that every version of Kubernetes accepts, and that need no quotes in
// nginx.conf.
var variableName = regexp.MustCompile(`^[-._a-zA-Z][-._a-zA-Z0-9]*$`)

func validateEnv(env []v1alpha2.EnvVar, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, variable := range env {
		if !variableName.MatchString(variable.Name) {
			errs = append(errs, field.Invalid(path.Index(i).Child("name"), bounded(variable.Name),
				"must contain only letters, digits, hyphens, dots, and underscores, and must not start with a digit, for example CACHE_SIZE"))
		}
	}
	return errs
}
