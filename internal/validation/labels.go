package validation

import (
	"maps"
	"slices"
	"strings"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/example/nginx-operator/internal/wellknown"
)

// ownLabels are the labels by which the operator, the Service, and the NetworkPolicy select Pods,
// and the standard labels that describe an object.
var ownLabels = []string{
	wellknown.LabelName, wellknown.LabelInstance, wellknown.LabelVersion,
	wellknown.LabelComponent, wellknown.LabelPartOf, wellknown.LabelManagedBy,
}

// ownPrefix is the prefix of the operator's own labels and annotations.
const ownPrefix = "operator.example.com/"

func validateLabels(labels map[string]string, path *field.Path) field.ErrorList {
	errs := metav1validation.ValidateLabels(labels, path)
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		if slices.Contains(ownLabels, key) || strings.HasPrefix(key, ownPrefix) {
			errs = append(errs,
				field.Forbidden(path.Key(key), "this label is reserved for the operator; remove it, or use your own prefix"))
		}
	}
	return errs
}

func validateAnnotations(annotations map[string]string, path *field.Path) field.ErrorList {
	errs := apivalidation.ValidateAnnotations(annotations, path)
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		if strings.HasPrefix(key, ownPrefix) {
			errs = append(errs,
				field.Forbidden(path.Key(key), "this prefix is reserved for the operator; remove the annotation, or use your own prefix"))
		}
	}
	return errs
}
