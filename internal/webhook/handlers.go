package webhook

import (
	"context"
	"encoding/json"
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
	"github.com/example/nginx-operator/internal/bounds"
	"github.com/example/nginx-operator/internal/conversion"
	"github.com/example/nginx-operator/internal/defaults"
)

// bounded hands on only what is within the bounds of what is decoded. A stored object that is not, or that cannot be decoded,
// is none for the handlers, so that whoever restores it is judged by what they write alone.
type bounded struct{ next admission.Handler }

var _ admission.Handler = bounded{}

// Handle refuses an object that is not within the bounds with the field and the way out.
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

// within returns why an object of v1alpha2 is not decoded, nil where it can be.
func within(raw []byte) error {
	object, err := bounds.Read(raw)
	if err != nil {
		return err
	}
	spec, _ := object["spec"].(map[string]any)
	if errs := bounds.Quantities(spec, field.NewPath("spec")); len(errs) > 0 {
		name, _, _ := unstructured.NestedString(object, "metadata", "name")
		return apierrors.NewInvalid(v1alpha2.GroupVersion.WithKind("NginxOperator").GroupKind(), name, errs)
	}
	_, err = bounds.Decode(object)
	return err
}

// minimalPatch answers with what the defaulter changes and nothing else. Written from its Go type, an object also has
// its quantities in another form ("500m" for "0.5"), and clients would see a difference to what they declare.
type minimalPatch struct {
	defaulter admission.Defaulter[*v1alpha2.NginxOperator]
}

var _ admission.Handler = minimalPatch{}

// Handle compares the object before and after, both written from the Go type.
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
		if raw[i], err = json.Marshal(version); err != nil {
			return admission.Errored(http.StatusInternalServerError, fmt.Errorf("failed to write the object: %w", err))
		}
	}
	return admission.PatchResponseFromRaw(raw[0], raw[1])
}

// fromV1alpha1 lets a handler that knows v1alpha2 answer for writes at v1alpha1. The API server would convert them as
// well (matchPolicy Equivalent). But for that it needs the conversion webhook, whatever the failurePolicy is, and while
// the operator is away no client of v1alpha1 could write.
type fromV1alpha1 struct{ next admission.Handler }

var _ admission.Handler = fromV1alpha1{}

// Handle hands the request on in its v1alpha2 form.
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

// upgrade converts an object of v1alpha1; there is no old one in the creation of an object.
func upgrade(raw []byte) ([]byte, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	if err := bounds.JSON(raw); err != nil {
		return nil, fmt.Errorf("failed to read the object: %w", err)
	}
	from := &unstructured.Unstructured{}
	if err := from.UnmarshalJSON(raw); err != nil {
		return nil, fmt.Errorf("failed to read the object: %w", err)
	}
	to := &unstructured.Unstructured{}
	to.SetGroupVersionKind(v1alpha2.GroupVersion.WithKind(from.GetKind()))
	if err := conversion.ToV1alpha2(from, to); err != nil {
		return nil, fmt.Errorf("failed to convert the object: %w", err)
	}
	return to.MarshalJSON()
}
