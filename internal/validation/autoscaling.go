package validation

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/defaults"
)

// maxReplicas is the maximum number of replicas, as in the schema.
const maxReplicas = 1000

// Autoscaling validates the bounds of spec.autoscaling, and requires a resource request for each
// target. Targets are percentages of the request, so an autoscaler without requests never works.
func Autoscaling(spec *v1alpha2.NginxOperatorSpec, path *field.Path) field.ErrorList {
	if spec.Autoscaling == nil {
		return nil
	}
	var errs field.ErrorList

	at, declared := path.Child("autoscaling"), defaults.Autoscaling(spec)
	if n := declared.MaxReplicas; n < 1 || n > maxReplicas {
		errs = append(errs, field.Invalid(at.Child("maxReplicas"), n, "must be between 1 and 1000"))
	} else if n := *declared.MinReplicas; n < 1 || n > declared.MaxReplicas {
		errs = append(errs, field.Invalid(at.Child("minReplicas"), n, "must be between 1 and maxReplicas"))
	}

	for _, target := range []struct {
		resource corev1.ResourceName
		name     string
		declared *int32
	}{
		{corev1.ResourceCPU, "targetCPUUtilizationPercentage", declared.TargetCPUUtilizationPercentage},
		{corev1.ResourceMemory, "targetMemoryUtilizationPercentage", declared.TargetMemoryUtilizationPercentage},
	} {
		if target.declared != nil && !requests(spec, target.resource) {
			errs = append(errs, field.Required(path.Child("resources", "requests").Key(string(target.resource)), fmt.Sprintf(
				"%s is a percentage of this request; set the request, or remove resources to use the default", at.Child(target.name))))
		}
	}
	return errs
}

// requests reports whether a resource is requested. Without a request, the limit counts as the
// request.
func requests(spec *v1alpha2.NginxOperatorSpec, name corev1.ResourceName) bool {
	resources := defaults.Resources(spec)
	quantity, found := resources.Requests[name]
	if !found {
		quantity = resources.Limits[name]
	}
	return quantity.AsApproximateFloat64() > 0
}
