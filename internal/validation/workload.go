package validation

import (
	"regexp"
	"slices"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/defaults"
	"github.com/example/nginx-operator/internal/wellknown"
)

// workloadOf returns the part of a spec that is copied into the containers and volumes of the Pods.
func workloadOf(spec *v1alpha2.NginxOperatorSpec) *v1alpha2.NginxOperatorSpec {
	return &v1alpha2.NginxOperatorSpec{
		Env: spec.Env, Volumes: spec.Volumes, InitContainers: spec.InitContainers, Sidecars: spec.Sidecars,
		ServiceAccountName: spec.ServiceAccountName, SecurityContext: spec.SecurityContext,
	}
}

// nginxVariables are environment variables that nginx itself reads.
var nginxVariables = []string{"NGINX", "NGINX_BPF_MAPS"}

// validateWorkload rejects values that are reserved for the operator, and values that would make
// the configuration or the Deployment ambiguous.
func validateWorkload(spec *v1alpha2.NginxOperatorSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if name := spec.ServiceAccountName; name != "" {
		errs = invalid(path.Child("serviceAccountName"), name, apivalidation.NameIsDNSSubdomain(name, false)...)
	}

	errs = append(errs, validateEnv(spec.Env, path.Child("env"))...)
	for i, variable := range spec.Env {
		if slices.Contains(nginxVariables, variable.Name) {
			errs = append(errs, field.Forbidden(path.Child("env").Index(i).Child("name"),
				"nginx uses this variable internally and does not start with another value; remove it"))
		}
	}

	errs = append(errs, validateVolumes(spec, path.Child("volumes"))...)
	return append(errs, validateContainers(spec, path)...)
}

// variableName matches names that every version of Kubernetes accepts, and that need no quotes in
// nginx.conf.
var variableName = regexp.MustCompile(`^[-._a-zA-Z][-._a-zA-Z0-9]*$`)

func validateEnv(env []v1alpha2.EnvVar, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, variable := range env {
		if !variableName.MatchString(variable.Name) {
			errs = append(errs, invalid(path.Index(i).Child("name"), variable.Name,
				"must contain only letters, digits, hyphens, dots, and underscores, and must not start with a digit, "+
					"for example CACHE_SIZE")...)
		}
	}
	return errs
}

// validateContainers validates init containers and sidecars. Their names must differ from each
// other and from the operator's containers.
func validateContainers(spec *v1alpha2.NginxOperatorSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	volumes, names := sets.New[string](), sets.New(wellknown.OperandContainer)
	if defaults.HasExporter(spec) {
		names.Insert(wellknown.ExporterContainer)
	}
	if defaults.HasRequestMetrics(spec) {
		names.Insert(wellknown.RequestMetricsContainer)
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
			errs = append(errs, invalid(at.Child("name"), container.Name, utilvalidation.IsDNS1123Label(container.Name)...)...)
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
		errs = append(errs, validateResources(resources.Requests, resources.Limits, at.Child("resources"))...)
	}

	for i, mount := range container.VolumeMounts {
		at := at.Child("volumeMounts").Index(i)
		if !volumes.Has(mount.Name) {
			unknown := field.NotFound(at.Child("name"), bounded(mount.Name))
			unknown.Detail = "add the volume to spec.volumes, or correct the name"
			errs = append(errs, unknown)
		}
		errs = append(errs, validateMount(mount.MountPath, mount.SubPath, at)...)
	}

	return errs
}
