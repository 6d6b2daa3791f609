package validation

import (
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/example/nginx-operator/api/v1alpha2"
)

// validatePodTemplate rejects invalid labels and annotations, and invalid names of pull Secrets.
// The API server would accept these names.
func validatePodTemplate(template *v1alpha2.PodTemplate, path *field.Path) field.ErrorList {
	if template == nil {
		return nil
	}
	errs := metav1validation.ValidateLabels(template.Labels, path.Child("labels"))
	errs = append(errs, apivalidation.ValidateAnnotations(template.Annotations, path.Child("annotations"))...)
	for i, secret := range template.ImagePullSecrets {
		errs = append(errs, validateName(secret.Name, path.Child("imagePullSecrets").Index(i).Child("name"))...)
	}
	return errs
}
