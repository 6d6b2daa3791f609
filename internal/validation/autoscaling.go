package validation

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/defaults"
)

// validateTargets requires a resource request for each target of spec.autoscaling. Targets are
// percentages of the request, so an autoscaler without requests never works.
func validateTargets(spec *v1alpha2.NginxOperatorSpec, path *field.Path) field.ErrorList {
	if spec.Autoscaling == nil {
		return nil
	}
	var errs field.ErrorList
	declared := defaults.Autoscaling(spec)
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
				"%s is a percentage of this request; set the request, or remove resources to use the default",
				path.Child("autoscaling", target.name))))
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
