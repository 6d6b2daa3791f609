package webhook

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/example/nginx-operator/api/v1alpha1"
	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/codec"
	"github.com/example/nginx-operator/internal/conversion"
	"github.com/example/nginx-operator/pkg/bounds"
)

// bounded calls the next handler only if the object is within the bounds of decoding. It omits a
// stored object that is not, or that cannot be decoded, so that a write that restores it is
// validated alone.
func bounded(next admission.Handler) admission.HandlerFunc {
	return func(ctx context.Context, request admission.Request) admission.Response {
		if err := within(request.Object.Raw); err != nil {
			var status apierrors.APIStatus
			if !errors.As(err, &status) {
				return admission.Errored(http.StatusBadRequest, fmt.Errorf("failed to read the object: %w", err))
			}

			response := admission.Denied("")
			response.Result = ptr.To(status.Status())
			return response
		}
		if len(request.OldObject.Raw) > 0 && within(request.OldObject.Raw) != nil {
			request.Operation, request.OldObject = admissionv1.Create, runtime.RawExtension{}
		}
		return next.Handle(ctx, request)
	}
}

// within returns why a v1alpha2 object cannot be decoded, or nil if it can.
func within(raw []byte) error {
	object, err := bounds.Read(raw)
	if err != nil {
		return err
	}

	spec, _ := object["spec"].(map[string]any)
	if errs := codec.Quantities(spec, field.NewPath("spec")); len(errs) > 0 {
		name, _, _ := unstructured.NestedString(object, "metadata", "name")
		return apierrors.NewInvalid(v1alpha2.GroupVersion.WithKind("NginxOperator").GroupKind(), name, errs)
	}

	_, err = codec.DecodeText(raw)
	return err
}

// fromV1alpha1 lets a v1alpha2 handler answer for writes at v1alpha1. The API server would convert
// them too (matchPolicy Equivalent), with another request to the conversion webhook for each write.
func fromV1alpha1(next admission.Handler) admission.HandlerFunc {
	return func(ctx context.Context, request admission.Request) admission.Response {
		if request.Kind.Version == v1alpha1.GroupVersion.Version {
			for _, object := range []*runtime.RawExtension{&request.Object, &request.OldObject} {
				raw, err := upgrade(object.Raw)
				if err != nil {
					return admission.Errored(http.StatusBadRequest, err)
				}
				object.Raw = raw
			}
			request.Kind.Version = v1alpha2.GroupVersion.Version
		}
		return next.Handle(ctx, request)
	}
}

// upgrade converts a v1alpha1 object. When an object is created, the old one is empty.
func upgrade(raw []byte) ([]byte, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	if err := bounds.JSON(raw); err != nil {
		return nil, fmt.Errorf("failed to read the object: %w", err)
	}

	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(raw); err != nil {
		return nil, fmt.Errorf("failed to read the object: %w", err)
	}

	conversion.ToV1alpha2(object)
	return object.MarshalJSON()
}
