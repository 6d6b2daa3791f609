package validation

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/example/nginx-operator/api/v1alpha2"
)

// validateMonitoring rejects references of images, quantities, and labels that the schema accepts.
func validateMonitoring(monitoring *v1alpha2.Monitoring, path *field.Path) field.ErrorList {
	if monitoring == nil {
		return nil
	}
	errs := validateImage(monitoring.Image, path.Child("image"))
	if resources := monitoring.Resources; resources != nil {
		errs = append(errs, validateResources(&corev1.ResourceRequirements{Limits: resources.Limits, Requests: resources.Requests},
			path.Child("resources"))...)
	}
	if monitor := monitoring.PodMonitor; monitor != nil {
		errs = append(errs, validateLabels(monitor.Labels, path.Child("podMonitor", "labels"))...)
	}
	if monitoring.Alerts != nil {
		errs = append(errs, validateLabels(monitoring.Alerts.Labels, path.Child("alerts", "labels"))...)
	}
	return errs
}
