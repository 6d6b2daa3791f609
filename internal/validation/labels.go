package validation

import (
	"maps"
	"slices"
	"strings"

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

// validateLabels rejects invalid labels, and labels of the operator. For labels of the Service and
// of Pods, the schema does the latter.
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
