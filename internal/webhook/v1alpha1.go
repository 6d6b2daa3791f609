package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/example/nginx-operator/internal/bounds"
	"github.com/example/nginx-operator/internal/conversion"
	"github.com/example/nginx-operator/internal/wellknown"
)

// PathV1alpha1 is where the webhook server answers for writes at v1alpha1.
const PathV1alpha1 = "/mutate-operator-example-com-v1alpha1-nginxoperator"

// matchPolicy Exact: a write at v1alpha2 says all, so there is nothing to give back.
//
// +kubebuilder:webhook:path=/mutate-operator-example-com-v1alpha1-nginxoperator,mutating=true,failurePolicy=ignore,matchPolicy=Exact,sideEffects=None,timeoutSeconds=5,groups=operator.example.com,resources=nginxoperators,verbs=create;update,versions=v1alpha1,name=keep.v1alpha1.nginxoperators.operator.example.com,admissionReviewVersions=v1

// V1alpha1 gives a write at v1alpha1 the annotation that keeps what v1alpha1 cannot say: a manifest that was written for
// v1alpha1 lacks it, and is replaced whole by kubectl replace and by clients that update what they remember. Who wants to
// change what is kept does it at v1alpha2, where it is validated.
type V1alpha1 struct{}

var _ admission.Handler = V1alpha1{}

// Handle answers with the patch that puts the stored annotation back.
func (V1alpha1) Handle(_ context.Context, request admission.Request) admission.Response {
	for _, raw := range [][]byte{request.Object.Raw, request.OldObject.Raw} {
		if err := bounds.JSON(raw); err != nil {
			return admission.Errored(http.StatusBadRequest, fmt.Errorf("failed to read the object: %w", err))
		}
	}
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(request.Object.Raw); err != nil {
		return admission.Errored(http.StatusBadRequest, fmt.Errorf("failed to read the object: %w", err))
	}
	annotations := object.GetAnnotations()
	given, isGiven := annotations[wellknown.AnnotationV1alpha2]
	if request.Operation == admissionv1.Create {
		return admitCreate(given)
	}
	old := &unstructured.Unstructured{}
	if err := old.UnmarshalJSON(request.OldObject.Raw); err != nil {
		return admission.Errored(http.StatusBadRequest, fmt.Errorf("failed to read the stored object: %w", err))
	}
	if manager, found := conversion.LosesPort(old.GetManagedFields(), object.GetManagedFields()); found {
		return admission.Denied(fmt.Sprintf("field manager %q has applied this object at v1alpha2, with a port that v1alpha1 has no name for, "+
			"so that the API server cannot apply spec.port: apply at v1alpha2, or at v1alpha1 as another field manager", manager))
	}
	stored, isStored := old.GetAnnotations()[wellknown.AnnotationV1alpha2]
	if given == stored && isGiven == isStored {
		return admission.Allowed("")
	}
	if conversion.Check(stored) != nil && isGiven {
		// Whoever restores a damaged annotation may do so.
		return admitCreate(given)
	}
	if isStored {
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[wellknown.AnnotationV1alpha2] = stored
	} else {
		delete(annotations, wellknown.AnnotationV1alpha2)
	}
	object.SetAnnotations(annotations)
	raw, err := json.Marshal(object)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, fmt.Errorf("failed to write the object: %w", err))
	}
	response := admission.PatchResponseFromRaw(request.Object.Raw, raw)
	if isGiven && !conversion.Same(given, stored) {
		response = response.WithWarnings(fmt.Sprintf("metadata.annotations[%s] is the operator's and stays as it was: "+
			"change these fields through v1alpha2, with kubectl edit nginxoperators.v1alpha2.operator.example.com %s",
			wellknown.AnnotationV1alpha2, request.Name))
	}
	return response
}

// admitCreate takes the annotation as it is, which restores a backup, unless nobody could read it later.
func admitCreate(given string) admission.Response {
	if err := conversion.Check(given); err != nil {
		return admission.Denied(fmt.Sprintf("metadata.annotations[%s] has to be what the operator wrote, and is not: %s; "+
			"restore it, or remove it and declare its fields through v1alpha2", wellknown.AnnotationV1alpha2, err))
	}
	return admission.Allowed("")
}
