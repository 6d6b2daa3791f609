package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/example/nginx-operator/api/v1alpha1"
	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/conversion"
)

// minimalPatch answers with what the defaulter changes and nothing else. Written from its Go type, an object also has
// its quantities in another form ("500m" for "0.5"), and clients would see a difference to what they declare.
type minimalPatch struct {
	defaulter admission.Defaulter[*v1alpha2.NginxOperator]
}

var _ admission.Handler = minimalPatch{}

// Handle compares the object before and after, both written from the Go type.
func (m minimalPatch) Handle(ctx context.Context, request admission.Request) admission.Response {
	object := &v1alpha2.NginxOperator{}
	if err := json.Unmarshal(request.Object.Raw, object); err != nil {
		return admission.Errored(http.StatusBadRequest, fmt.Errorf("failed to read the object: %w", err))
	}
	before := object.DeepCopy()
	if err := m.defaulter.Default(admission.NewContextWithRequest(ctx, request), object); err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	if equality.Semantic.DeepEqual(before, object) {
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
