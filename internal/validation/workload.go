package validation

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/example/nginx-operator/api/v1alpha2"
)

// workloadOf returns the part of a spec that is copied into the containers and volumes of the Pods.
func workloadOf(spec *v1alpha2.NginxOperatorSpec) *v1alpha2.NginxOperatorSpec {
	return &v1alpha2.NginxOperatorSpec{
		Env: spec.Env, Volumes: spec.Volumes, InitContainers: spec.InitContainers, Sidecars: spec.Sidecars,
		ServiceAccountName: spec.ServiceAccountName, SecurityContext: spec.SecurityContext,
	}
}

// changesWorkload reports whether a spec sets this part, and whether it differs from the previous
// spec.
func changesWorkload(before, spec *v1alpha2.NginxOperatorSpec) bool {
	now := workloadOf(spec)
	return !equality.Semantic.DeepEqual(now, &v1alpha2.NginxOperatorSpec{}) && !equality.Semantic.DeepEqual(workloadOf(before), now)
}

// validateWorkload rejects values that are reserved for the operator, and values that would make
// the configuration or the Deployment ambiguous.
func validateWorkload(spec *v1alpha2.NginxOperatorSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if spec.ServiceAccountName != "" {
		errs = append(errs, validateName(spec.ServiceAccountName, path.Child("serviceAccountName"))...)
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

// nginxVariables are environment variables that nginx itself reads.
var nginxVariables = []string{"NGINX", "NGINX_BPF_MAPS"}
