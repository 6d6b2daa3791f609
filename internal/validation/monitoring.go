package validation

import (
	"regexp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/example/nginx-operator/api/v1alpha2"
)

// maxMonitoringLabels is the maximum number of labels of the PodMonitor, and of the PrometheusRule,
// as in the schema.
const maxMonitoringLabels = 16

// scrapeInterval matches intervals, as in the schema.
var scrapeInterval = regexp.MustCompile(`^[1-9][0-9]{0,3}[sm]$`)

// sizeOfMonitoring bounds the number of labels.
func sizeOfMonitoring(monitoring *v1alpha2.Monitoring, path *field.Path) field.ErrorList {
	if monitoring == nil {
		return nil
	}
	var errs field.ErrorList
	if monitoring.PodMonitor != nil {
		errs = atMost(len(monitoring.PodMonitor.Labels), maxMonitoringLabels, path.Child("podMonitor", "labels"))
	}
	if monitoring.Alerts != nil {
		errs = append(errs, atMost(len(monitoring.Alerts.Labels), maxMonitoringLabels, path.Child("alerts", "labels"))...)
	}
	return errs
}

// validateMonitoring repeats the rules of the schema, and rejects labels of the operator.
func validateMonitoring(monitoring *v1alpha2.Monitoring, path *field.Path) field.ErrorList {
	if monitoring == nil {
		return nil
	}
	errs := validateImage(monitoring.Image, path.Child("image"))
	if modes := []v1alpha2.ExporterMode{"", v1alpha2.ExporterSidecar, v1alpha2.ExporterNone}; !slices.Contains(modes, monitoring.Exporter) {
		errs = append(errs, field.NotSupported(path.Child("exporter"), v1alpha2.ExporterMode(bounded(string(monitoring.Exporter))), modes[1:]))
	}

	saysMore := monitoring.Image != "" || monitoring.Resources != nil || monitoring.PodMonitor != nil || monitoring.Alerts != nil
	if saysMore && monitoring.Exporter == v1alpha2.ExporterNone {
		errs = append(errs, field.Invalid(path, field.OmitValueType{}, "exporter None runs no exporter; remove image, resources, podMonitor, "+
			"and alerts, or set exporter to Sidecar"))
	}

	if resources := monitoring.Resources; resources != nil {
		errs = append(errs, validateResources(&corev1.ResourceRequirements{Limits: resources.Limits, Requests: resources.Requests},
			path.Child("resources"))...)
	}

	if monitor := monitoring.PodMonitor; monitor != nil {
		at := path.Child("podMonitor")
		errs = append(errs, validateLabels(monitor.Labels, at.Child("labels"))...)
		if monitor.Interval != "" && !scrapeInterval.MatchString(monitor.Interval) {
			errs = append(errs, field.Invalid(at.Child("interval"), bounded(monitor.Interval),
				"must be a number of seconds or minutes, for example 30s or 1m"))
		}
	}

	if monitoring.Alerts != nil {
		errs = append(errs, validateLabels(monitoring.Alerts.Labels, path.Child("alerts", "labels"))...)
	}
	return errs
}
