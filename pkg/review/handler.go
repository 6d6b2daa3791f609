// Package review answers AdmissionReviews. Any Pod can post one, so each part is bounded before it
// is decoded, and escaped before it is logged. The handler of controller-runtime decodes YAML and
// Protocol Buffers, whose cost does not depend on their length alone.
package review

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	kjson "sigs.k8s.io/json"

	"github.com/example/nginx-operator/pkg/bounds"
	"github.com/example/nginx-operator/pkg/untrusted"
)

type handler struct {
	next admission.Handler
	// object returns an error if an object must not reach the next handler.
	object func(raw []byte) error
	logs   *untrusted.Limit
}

// Handler returns an HTTP handler for a handler that bounds the objects before it decodes them.
func Handler(next admission.Handler) http.Handler {
	return handler{next, func([]byte) error { return nil }, untrusted.NewLimit()}
}

// BoundedHandler returns an HTTP handler that rejects an object that exceeds bounds.JSON.
func BoundedHandler(next admission.Handler) http.Handler {
	return handler{next, bounds.JSON, untrusted.NewLimit()}
}

// ServeHTTP answers a review, or with an HTTP error, so that the webhook's failurePolicy decides.
func (h handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	logger := h.logs.Logger(log.FromContext(r.Context())).WithValues("path", r.URL.Path)

	if kind := r.Header.Get("Content-Type"); kind != "application/json" {
		http.Error(w, "the Content-Type must be application/json", http.StatusUnsupportedMediaType)
		return
	}

	request, err := h.read(r)
	if err != nil {
		logger.V(1).Info("Rejected an AdmissionReview", "reason", err)
		http.Error(w, "failed to read the AdmissionReview: "+untrusted.Text(err.Error()), http.StatusBadRequest)
		return
	}

	logger = logger.WithValues("namespace", request.Namespace, "name", request.Name, "requestID", request.UID)
	response := h.next.Handle(log.IntoContext(r.Context(), logger), request)
	if err := response.Complete(request); err != nil {
		logger.Error(err, "Failed to encode the patch of an admission response")
		http.Error(w, "failed to encode the patch", http.StatusInternalServerError)
		return
	}

	w.Header().Set("Content-Type", "application/json")
	review := admissionv1.AdmissionReview{TypeMeta: typeMeta, Response: &response.AdmissionResponse}
	if err := json.NewEncoder(w).Encode(review); err != nil {
		logger.V(1).Info("Failed to answer an AdmissionReview", "reason", err)
	}
}

var typeMeta = metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: "AdmissionReview"}

// read returns the request of a review. Its objects share memory with the body.
func (h handler) read(r *http.Request) (admission.Request, error) {
	if r.ContentLength < 0 || r.ContentLength > bounds.MaxReviewBytes {
		return admission.Request{}, fmt.Errorf("the Content-Length is missing, or exceeds the limit of %d bytes", bounds.MaxReviewBytes)
	}

	body := make([]byte, r.ContentLength)
	if _, err := io.ReadFull(r.Body, body); err != nil {
		return admission.Request{}, err
	}

	r.Body = http.NoBody // so that the body is not in memory twice

	parts, err := bounds.ReadReview(body)
	if err != nil {
		return admission.Request{}, err
	}

	for _, raw := range [][]byte{parts.Object, parts.OldObject} {
		if err := h.object(raw); err != nil {
			return admission.Request{}, fmt.Errorf("request.object or request.oldObject: %w", err)
		}
	}

	// This is not the type of the API, because a request needs no space for the response.
	var review struct {
		metav1.TypeMeta
		Request *admissionv1.AdmissionRequest `json:"request"`
	}

	if err := kjson.UnmarshalCaseSensitivePreserveInts(parts.Envelope, &review); err != nil {
		return admission.Request{}, err
	}
	if review.TypeMeta != typeMeta || review.Request == nil {
		return admission.Request{}, errors.New("must be an AdmissionReview of admission.k8s.io/v1 with a request")
	}

	review.Request.Object.Raw, review.Request.OldObject.Raw = parts.Object, parts.OldObject
	return admission.Request{AdmissionRequest: *review.Request}, nil
}
