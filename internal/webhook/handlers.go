package webhook

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	kjson "sigs.k8s.io/json"

	"github.com/example/nginx-operator/api/v1alpha1"
	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/codec"
	"github.com/example/nginx-operator/internal/conversion"
	"github.com/example/nginx-operator/internal/defaults"
	"github.com/example/nginx-operator/pkg/bounds"
)

// bounded calls the next handler only if the object is within the bounds of decoding. It omits a
// stored object that is not, or that cannot be decoded, so that a write that restores it is
// validated alone.
type bounded struct{ next admission.Handler }

var _ admission.Handler = bounded{}

// Handle rejects an object beyond the bounds, with the field and the remedy.
func (b bounded) Handle(ctx context.Context, request admission.Request) admission.Response {
	if err := within(request.Object.Raw); err != nil {
		var status apierrors.APIStatus
		if !errors.As(err, &status) {
			return admission.Errored(http.StatusBadRequest, fmt.Errorf("failed to read the object: %w", err))
		}
		response := admission.Denied("")
		result := status.Status()
		response.Result = &result
		return response
	}
	if len(request.OldObject.Raw) > 0 && within(request.OldObject.Raw) != nil {
		request.Operation, request.OldObject = admissionv1.Create, runtime.RawExtension{}
	}
	return b.next.Handle(ctx, request)
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

// minimalPatch returns only the changes of the defaulter. The Go type writes quantities in another
// form ("500m" for "0.5"), so clients would see a difference to their manifest.
type minimalPatch struct {
	defaulter admission.Defaulter[*v1alpha2.NginxOperator]
}

var _ admission.Handler = minimalPatch{}

// Handle compares the object before and after the defaulter, both encoded from the Go type.
func (m minimalPatch) Handle(ctx context.Context, request admission.Request) admission.Response {
	object := &v1alpha2.NginxOperator{}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(request.Object.Raw, object); err != nil {
		return admission.Errored(http.StatusBadRequest, fmt.Errorf("failed to read the object: %w", err))
	}

	before := object.DeepCopy()
	if err := m.defaulter.Default(admission.NewContextWithRequest(ctx, request), object); err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}

	if equality.Semantic.DeepEqual(before, object) && defaults.SameSpec(&before.Spec, &object.Spec) {
		return admission.Allowed("")
	}

	var raw [2][]byte
	for i, version := range []*v1alpha2.NginxOperator{before, object} {
		var err error
		// The defaulter changes only the spec, and metadata can be large.
		if raw[i], err = codec.Encode(map[string]any{"spec": version.Spec}); err != nil {
			return admission.Errored(http.StatusInternalServerError, fmt.Errorf("failed to write the object: %w", err))
		}
	}
	return admission.PatchResponseFromRaw(raw[0], raw[1])
}

// fromV1alpha1 lets a v1alpha2 handler answer for writes at v1alpha1. The API server would convert
// them too (matchPolicy Equivalent), but with another request to the conversion webhook for each
// write. It converts each write for storage anyway, so no client of v1alpha1 can write while the
// operator is down.
type fromV1alpha1 struct{ next admission.Handler }

var _ admission.Handler = fromV1alpha1{}

// Handle converts the request to v1alpha2 and calls the next handler.
func (f fromV1alpha1) Handle(ctx context.Context, request admission.Request) admission.Response {
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
	return f.next.Handle(ctx, request)
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
