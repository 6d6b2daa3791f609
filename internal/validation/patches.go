package validation

import (
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/example/nginx-operator/api/v1alpha2"
)

// PatchVerdict returns what the API server found wrong with a child of a kind that is patched as errors of the patches: as the operator
// makes the child, only fields that Verdict knows can be wrong.
func PatchVerdict(err error, spec *v1alpha2.NginxOperatorSpec, kind string, path *field.Path) field.ErrorList {
	var of []int
	for i := range spec.Patches {
		if spec.Patches[i].Target.Kind == kind {
			of = append(of, i)
		}
	}
	var status apierrors.APIStatus
	if len(of) == 0 || !apierrors.IsInvalid(err) || !errors.As(err, &status) || status.Status().Details == nil {
		return nil
	}
	at := path.Child("patches")
	if len(of) == 1 {
		at = at.Index(of[0]).Child("patch")
	}
	var errs field.ErrorList
	for _, cause := range status.Status().Details.Causes {
		if _, known := origin(cause.Field, spec); known {
			continue
		}
		message := strings.TrimPrefix(strings.TrimPrefix(cause.Message, field.ErrorType(cause.Type).String()), ": ")
		errs = append(errs, field.Invalid(at, field.OmitValueType{}, bounded(fmt.Sprintf("%s: %s: %s", kind, cause.Field, message))))
	}
	return firstOf(errs, path)
}
