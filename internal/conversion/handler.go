package conversion

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/example/nginx-operator/api/v1alpha1"
	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/pkg/bounds"
	"github.com/example/nginx-operator/pkg/untrusted"
)

// handler answers conversion reviews as a stream: it reads, converts, and writes one object before
// it reads the next one. A review has all objects of a list, up to 60 MiB, and the handler has one
// of them in memory.
//
// The stream never ends in a truncated success. The result of a review follows its objects, so an
// object that fails makes the whole answer a Failure, and the API server ignores the objects before
// it. If the connection or the process ends, the answer has no result and is not valid JSON. The
// client, like http.Client, sends its body while it reads the answer, so the server must not wait
// for the end of the body (EnableFullDuplex). After a failure, the server reads the rest of the
// body, so that the client gets the answer instead of a connection reset.
type handler struct {
	// failed is called for each review that is answered with a failure.
	failed func()
	logs   *untrusted.Limit
}

// reviewHeader has the fields of a ConversionReview before its objects.
type reviewHeader struct{ apiVersion, kind, uid, version string }

// ServeHTTP converts the objects of a review one by one, and writes each immediately.
func (h handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	logger := h.logs.Logger(log.FromContext(r.Context()))
	// HTTP/2 does not need this, and returns an error.
	_ = http.NewResponseController(w).EnableFullDuplex()
	decoder := json.NewDecoder(&metered{from: r.Body})
	header, err := readHeader(decoder)
	if err != nil {
		http.Error(w, "failed to read the review: "+untrusted.Text(err.Error()), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	out := newOutput(w)
	out.text(`{"apiVersion":`).json(header.apiVersion).text(`,"kind":`).json(header.kind)
	out.text(`,"response":{"uid":`).json(header.uid).text(`,"convertedObjects":[`)
	result := metav1.Status{Status: metav1.StatusSuccess}
	if err := convertAll(decoder, r.Body, header.version, out); err != nil {
		logger.Error(err, "Failed to convert", "request", header.uid)
		result = metav1.Status{Status: metav1.StatusFailure, Message: untrusted.Text(err.Error())}
		h.failed()
		_, _ = io.Copy(io.Discard, r.Body)
	}
	out.text(`],"result":`).json(result).text("}}")
	if err := out.end(); err != nil {
		logger.Error(err, "Failed to answer a conversion review")
	}
}

// readHeader reads a review up to its first object.
func readHeader(decoder *json.Decoder) (reviewHeader, error) {
	header := reviewHeader{apiVersion: apiextensionsv1.SchemeGroupVersion.String(), kind: "ConversionReview"}
	found, err := walk(decoder, map[string]*string{"apiVersion": &header.apiVersion, "kind": &header.kind}, "request")
	if err == nil && found {
		found, err = walk(decoder, map[string]*string{"uid": &header.uid, "desiredAPIVersion": &header.version}, "objects")
	}
	if err == nil && (!found || header.version == "") {
		err = errors.New("it has no objects, or the desired version does not precede them")
	}
	return header, err
}

// walk reads strings of the next object, until it reaches the value of the last field.
func walk(decoder *json.Decoder, texts map[string]*string, last string) (found bool, err error) {
	if token, err := decoder.Token(); err != nil || token != json.Delim('{') {
		return false, err
	}
	for decoder.More() {
		key, err := decoder.Token()
		if err != nil || key == last {
			return err == nil, err
		}
		var value any = &skipped{}
		if name, isText := key.(string); isText && texts[name] != nil {
			value = texts[name]
		}
		if err := decoder.Decode(value); err != nil {
			return false, err
		}
	}
	return false, nil
}

// skipped is a value that is not needed.
type skipped struct{}

// UnmarshalJSON accepts any value.
func (*skipped) UnmarshalJSON([]byte) error { return nil }

// convertAll writes the converted objects. It reads the objects from the body, after the text that
// the decoder has read.
func convertAll(decoder *json.Decoder, body io.Reader, version string, out *output) error {
	if token, err := decoder.Token(); err != nil || token == nil { // null
		return err
	} else if token != json.Delim('[') {
		return errors.New("failed to read the objects: they are not a list")
	}
	separator := ""
	for raw, err := range elements(io.MultiReader(decoder.Buffered(), body)) {
		if err != nil {
			return fmt.Errorf("failed to read an object: %w", err)
		}
		converted, err := convertRaw(raw, version)
		if err != nil {
			return err
		}
		if out.text(separator).json(converted.Object); out.err != nil {
			return out.err
		}
		separator = ","
	}
	return nil
}

// convertRaw converts one object. The result shares memory with the text of the object and must not
// be changed.
func convertRaw(raw []byte, version string) (*unstructured.Unstructured, error) {
	if err := bounds.Stored(raw); err != nil {
		return nil, fmt.Errorf("failed to read an object: %w", err)
	}
	from, err := readShallow(raw)
	if err != nil {
		return nil, fmt.Errorf("failed to read an object: %w", err)
	}
	kind := from.GroupVersionKind()
	wanted, err := schema.ParseGroupVersion(version)
	if err != nil || kind.GroupKind() != v1alpha2.GroupVersion.WithKind("NginxOperator").GroupKind() {
		return nil, fmt.Errorf("failed to convert from %s to %s: unknown kind", kind, version)
	}
	to := &unstructured.Unstructured{}
	to.SetGroupVersionKind(wanted.WithKind(kind.Kind))
	switch [2]schema.GroupVersion{kind.GroupVersion(), wanted} {
	case [2]schema.GroupVersion{v1alpha1.GroupVersion, v1alpha2.GroupVersion}:
		err = ToV1alpha2(from, to)
	case [2]schema.GroupVersion{v1alpha2.GroupVersion, v1alpha1.GroupVersion}:
		err = ToV1alpha1(from, to)
	default:
		err = fmt.Errorf("failed to convert from %s to %s: unknown versions", kind.GroupVersion(), version)
	}
	return to, err
}
