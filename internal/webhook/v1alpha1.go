package webhook

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"gomodules.xyz/jsonpatch/v2"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/example/nginx-operator/internal/conversion"
	"github.com/example/nginx-operator/internal/schema"
	"github.com/example/nginx-operator/internal/wellknown"
	"github.com/example/nginx-operator/pkg/bounds"
)

// PathV1alpha1 is the path of the webhook server for writes at v1alpha1.
const PathV1alpha1 = "/mutate-operator-example-com-v1alpha1-nginxoperator"

// matchPolicy Exact: a write at v1alpha2 is complete, so there is nothing to restore.
// failurePolicy Fail: without an answer, the write would remove all fields that v1alpha1 cannot
// express. While the operator is down, the write fails anyway, because the operator converts it.
//
// +kubebuilder:webhook:path=/mutate-operator-example-com-v1alpha1-nginxoperator,mutating=true,failurePolicy=fail,matchPolicy=Exact,sideEffects=None,timeoutSeconds=5,groups=operator.example.com,resources=nginxoperators,verbs=create;update,versions=v1alpha1,name=keep.v1alpha1.nginxoperators.operator.example.com,admissionReviewVersions=v1

// keepAnnotation restores the annotation with fields that v1alpha1 cannot express. kubectl replace
// with a manifest for v1alpha1, and clients that update an old copy, would remove it.
func keepAnnotation(_ context.Context, request admission.Request) admission.Response {
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
		return admitGiven(request.Object.Raw, given)
	}

	old := &unstructured.Unstructured{}
	if err := old.UnmarshalJSON(request.OldObject.Raw); err != nil {
		return admission.Errored(http.StatusBadRequest, fmt.Errorf("failed to read the stored object: %w", err))
	}

	if manager, found := conversion.LosesPort(old.GetManagedFields(), object.GetManagedFields()); found {
		return admission.Denied(fmt.Sprintf("field manager %q applied this object at v1alpha2, with a port name that v1alpha1 does not "+
			"support, so the API server cannot apply spec.port. Apply at v1alpha2, or at v1alpha1 with another field manager", manager))
	}

	stored, isStored := old.GetAnnotations()[wellknown.AnnotationV1alpha2]
	if given == stored && isGiven == isStored {
		return admission.Allowed("")
	}
	if conversion.Check(stored) != nil && isGiven {
		// A client may restore a damaged annotation.
		return admitGiven(request.Object.Raw, given)
	}

	response := admission.Patched("", restoreAnnotation(len(annotations) > 0, stored, isStored))
	if isGiven && !conversion.Same(given, stored) {
		response = response.WithWarnings(fmt.Sprintf("metadata.annotations[%s] is managed by the operator and was not changed. To change "+
			"these fields, run kubectl edit nginxoperators.v1alpha2.operator.example.com %s",
			wellknown.AnnotationV1alpha2, request.Name))
	}

	return response
}

// restoreAnnotation returns the operation that restores the stored annotation, or its absence.
func restoreAnnotation(hasOthers bool, stored string, isStored bool) jsonpatch.Operation {
	const annotations = "/metadata/annotations"
	path := annotations + "/" + strings.ReplaceAll(wellknown.AnnotationV1alpha2, "/", "~1")
	switch {
	case !isStored:
		return jsonpatch.NewOperation("remove", path, nil)
	case !hasOthers:
		return jsonpatch.NewOperation("add", annotations, map[string]string{wellknown.AnnotationV1alpha2: stored})
	default:
		return jsonpatch.NewOperation("add", path, stored)
	}
}

// admitGiven admits the given annotation, which restores a backup, unless it is unreadable, or the
// schema of v1alpha2 rejects the resulting spec, which the API server does not validate.
func admitGiven(raw []byte, given string) admission.Response {
	err := conversion.Check(given)
	if err == nil && given != "" {
		err = checkConverted(raw)
	}
	if err != nil {
		return admission.Denied(fmt.Sprintf("metadata.annotations[%s] must be the value that the operator wrote: %s. Restore it, or remove it "+
			"and set its fields at v1alpha2", wellknown.AnnotationV1alpha2, err))
	}

	return admission.Allowed("")
}

// checkConverted returns why the schema of v1alpha2 rejects a v1alpha1 object, or nil.
func checkConverted(raw []byte) error {
	converted, err := upgrade(raw)
	if err != nil {
		return err
	}

	object, err := bounds.Read(converted)
	if err != nil {
		return err
	}

	spec, _ := object["spec"].(map[string]any)
	return schema.Violations(spec, specPath).ToAggregate()
}
