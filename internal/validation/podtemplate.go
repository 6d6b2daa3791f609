package validation

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/example/nginx-operator/api/v1alpha2"
)

// validatePodTemplate holds what is the operator's and what the API server does not look at: a Secret of no possible name it takes.
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
