package validation

import (
	"regexp"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/example/nginx-operator/api/v1alpha2"
)

// maxEnv is how many environment variables of a container the schema allows.
const maxEnv = 64

// workloadOf returns the part of a spec that is handed on to the containers of the Pods and to their volumes.
func workloadOf(spec *v1alpha2.NginxOperatorSpec) *v1alpha2.NginxOperatorSpec {
	return &v1alpha2.NginxOperatorSpec{
		Env: spec.Env, Volumes: spec.Volumes, InitContainers: spec.InitContainers, Sidecars: spec.Sidecars,
		ServiceAccountName: spec.ServiceAccountName, SecurityContext: spec.SecurityContext,
	}
}

// saysOtherWorkload reports whether a spec says something of it that the spec before did not say.
func saysOtherWorkload(before, spec *v1alpha2.NginxOperatorSpec) bool {
	now := workloadOf(spec)
	return !equality.Semantic.DeepEqual(now, &v1alpha2.NginxOperatorSpec{}) && !equality.Semantic.DeepEqual(workloadOf(before), now)
}

// validateWorkloadSize bounds what all other rules look at.
func validateWorkloadSize(spec *v1alpha2.NginxOperatorSpec, path *field.Path) field.ErrorList {
	errs := atMost(len(spec.Env), maxEnv, path.Child("env"))
	errs = append(errs, atMost(len(spec.Volumes), maxVolumes, path.Child("volumes"))...)
	errs = append(errs, atMost(len(spec.InitContainers), maxContainers, path.Child("initContainers"))...)
	return append(errs, atMost(len(spec.Sidecars), maxContainers, path.Child("sidecars"))...)
}

func atMost(n, most int, path *field.Path) field.ErrorList {
	if n > most {
		return field.ErrorList{field.TooMany(path, n, most)}
	}
	return nil
}

// validateWorkload holds what is the operator's, and what would make the configuration or the record of the Deployment ambiguous.
func validateWorkload(spec *v1alpha2.NginxOperatorSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if spec.ServiceAccountName != "" {
		errs = append(errs, validateName(spec.ServiceAccountName, path.Child("serviceAccountName"))...)
	}
	if context := spec.SecurityContext; context != nil && context.RunAsUser != nil && *context.RunAsUser == 0 {
		errs = append(errs, field.Forbidden(path.Child("securityContext", "runAsUser"), "nginx does not run as root; name another user"))
	}
	errs = append(errs, validateEnv(spec.Env, path.Child("env"))...)
	for i, variable := range spec.Env {
		if slices.Contains(nginxVariables, variable.Name) {
			errs = append(errs, field.Forbidden(path.Child("env").Index(i).Child("name"),
				"nginx hands sockets on in this variable, and does not start with another value; remove it"))
		}
	}
	errs = append(errs, validateVolumes(spec, path.Child("volumes"))...)
	return append(errs, validateContainers(spec, path)...)
}

// nginxVariables are read by nginx itself.
var nginxVariables = []string{"NGINX", "NGINX_BPF_MAPS"}

// variableName is what every Kubernetes takes, and what stands in nginx.conf as it is.
var variableName = regexp.MustCompile(`^[-._a-zA-Z][-._a-zA-Z0-9]*$`)

func validateEnv(env []v1alpha2.EnvVar, path *field.Path) field.ErrorList {
	errs := validateUnique(env, "name", path, func(variable v1alpha2.EnvVar) string { return variable.Name })
	for i, variable := range env {
		if !variableName.MatchString(variable.Name) {
			errs = append(errs, field.Invalid(path.Index(i).Child("name"), bounded(variable.Name),
				"must be letters, digits, hyphens, dots and underscores, and not begin with a digit, for example CACHE_SIZE"))
		}
	}
	return errs
}

// validateUnique finds elements of a list with the same key: the schema does not see what v1alpha1 keeps, and a merge would make one of
// two.
func validateUnique[T any](list []T, key string, path *field.Path, of func(T) string) field.ErrorList {
	var errs field.ErrorList
	seen := sets.New[string]()
	for i, element := range list {
		if name := of(element); name != "" && seen.Has(name) {
			errs = append(errs, field.Duplicate(path.Index(i).Child(key), bounded(name)))
		}
		seen.Insert(of(element))
	}
	return errs
}
