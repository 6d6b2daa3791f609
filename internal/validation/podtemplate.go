package validation

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/example/nginx-operator/api/v1alpha2"
)

// validatePodTemplate rejects labels and annotations that are reserved for the operator, and
// invalid names of pull Secrets. The API server would accept all of these.
func validatePodTemplate(template *v1alpha2.PodTemplate, path *field.Path) field.ErrorList {
	if template == nil {
		return nil
	}
	errs := validateLabels(template.Labels, path.Child("labels"))
	errs = append(errs, validateAnnotations(template.Annotations, path.Child("annotations"))...)
	for i, secret := range template.ImagePullSecrets {
		errs = append(errs, validateName(secret.Name, path.Child("imagePullSecrets").Index(i).Child("name"))...)
	}
	return errs
}
