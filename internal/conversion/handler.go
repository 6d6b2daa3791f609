package conversion

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"unicode/utf8"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/example/nginx-operator/api/v1alpha1"
	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/codec"
	"github.com/example/nginx-operator/pkg/bounds"
	"github.com/example/nginx-operator/pkg/untrusted"
)

// Path is the path of conversion requests on the webhook server.
const Path = "/convert"

// handler answers conversion reviews as a stream, with one object in memory at a time. A review has
// all objects of a list, up to 60 MiB.
//
// A truncated answer is never a success: the result of a review follows its objects. The API server
// sends its body while it reads the answer, so the handler must not wait for the end of the body
// (EnableFullDuplex). After a failure, it reads the rest of the body, so that the client gets the
// answer instead of a connection reset.
type handler struct {
	failed func()
	logs   *untrusted.Limit
}

// NewHandler returns the handler of conversion requests. It calls the function for each review that
// is answered with a failure.
func NewHandler(failed func()) http.Handler { return handler{failed, untrusted.NewLimit()} }

// ServeHTTP converts the objects of a review one by one.
func (h handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	logger := h.logs.Logger(log.FromContext(r.Context()))
	// HTTP/2 does not need this, and returns an error.
	_ = http.NewResponseController(w).EnableFullDuplex()

	body := &metered{from: r.Body, left: bounds.MaxBytes}
	decoder := json.NewDecoder(body)
	uid, version, err := readHeader(decoder)
	if err != nil {
		http.Error(w, "failed to read the review: "+untrusted.Text(err.Error()), http.StatusBadRequest)
		return
	}

	w.Header().Set("Content-Type", "application/json")
	out := output{bufio.NewWriterSize(w, 32<<10)}
	out.text(`{"apiVersion":`).json(apiextensionsv1.SchemeGroupVersion.String()).text(`,"kind":"ConversionReview"`)
	out.text(`,"response":{"uid":`).json(uid).text(`,"convertedObjects":[`)

	result := metav1.Status{Status: metav1.StatusSuccess}
	if err := convertAll(decoder, body, version, out); err != nil {
		logger.Error(err, "Failed to convert an object", "request", uid)
		result = metav1.Status{Status: metav1.StatusFailure, Message: untrusted.Text(err.Error())}
		h.failed()
		_, _ = io.Copy(io.Discard, r.Body)
	}

	out.text(`],"result":`).json(result).text("}}")
	if err := out.Flush(); err != nil {
		logger.Error(err, "Failed to answer a conversion review")
	}
}

// metered bounds each object: a decoder has a value in memory before its length is known.
type metered struct {
	from io.Reader
	left int
}

var errTooLong = fmt.Errorf("exceeds the limit of %d bytes", bounds.MaxBytes)

// Read returns an error if the client sends too much.
func (m *metered) Read(p []byte) (int, error) {
	if m.left == 0 {
		return 0, errTooLong
	}

	n, err := m.from.Read(p[:min(len(p), m.left)])
	m.left -= n
	return n, err
}

var errNoObjects = errors.New("request.desiredAPIVersion and request.objects, in this order, are required")

func readHeader(decoder *json.Decoder) (uid, version string, err error) {
	err = seek(decoder, "request", nil)
	if err == nil {
		err = seek(decoder, "objects", map[string]*string{"uid": &uid, "desiredAPIVersion": &version})
	}
	if err == nil && version == "" {
		err = errNoObjects
	}
	return uid, version, err
}

// seek reads the next object up to the value of a field, and the texts before it.
func seek(decoder *json.Decoder, field string, texts map[string]*string) error {
	if token, err := decoder.Token(); err != nil || token != json.Delim('{') {
		return cmp.Or(err, errNoObjects)
	}
	for decoder.More() {
		key, err := decoder.Token()
		if err != nil || key == field {
			return err
		}

		var value any = &json.RawMessage{}
		if name, isText := key.(string); isText && texts[name] != nil {
			value = texts[name]
		}
		if err := decoder.Decode(value); err != nil {
			return err
		}
	}

	return errNoObjects
}

func convertAll(decoder *json.Decoder, body *metered, version string, out output) error {
	if token, err := decoder.Token(); err != nil || token == nil { // null
		return err
	} else if token != json.Delim('[') {
		return errors.New("request.objects must be a list")
	}

	var raw json.RawMessage
	separator := ""
	for body.left = bounds.MaxBytes; decoder.More(); body.left = bounds.MaxBytes {
		if err := decoder.Decode(&raw); err != nil {
			return fmt.Errorf("failed to read an object: %w", err)
		}

		converted, err := convertRaw(raw, version)
		if err != nil {
			return err
		}
		if _, err := out.WriteString(separator); err != nil {
			return err
		}

		out.json(converted.Object)
		separator = ","
	}

	if _, err := decoder.Token(); err != nil {
		return fmt.Errorf("failed to read an object: %w", err)
	}
	return nil
}

func convertRaw(raw []byte, version string) (*unstructured.Unstructured, error) {
	if err := bounds.Stored(raw); err != nil {
		return nil, fmt.Errorf("failed to read an object: %w", err)
	}

	object, err := readShallow(raw)
	if err != nil {
		return nil, fmt.Errorf("failed to read an object: %w", err)
	}

	kind := object.GroupVersionKind()
	if kind.GroupKind() != v1alpha2.GroupVersion.WithKind("NginxOperator").GroupKind() {
		return nil, fmt.Errorf("failed to convert from %s to %s: unsupported kind", kind, version)
	}

	switch from := kind.GroupVersion(); {
	case from == v1alpha1.GroupVersion && version == v1alpha2.GroupVersion.String():
		ToV1alpha2(object)
	case from == v1alpha2.GroupVersion && version == v1alpha1.GroupVersion.String():
		ToV1alpha1(object)
	default:
		return nil, fmt.Errorf("failed to convert from %s to %s: unsupported versions", from, version)
	}

	return object, nil
}

// maxPiece bounds the text that is encoded at a time, in bytes.
const maxPiece = 4 << 10

// output writes JSON without holding a whole value in memory. Flush returns the first error.
type output struct{ *bufio.Writer }

func (o output) text(part string) output {
	_, _ = o.WriteString(part)
	return o
}

// json writes a value. Objects have their keys in order.
func (o output) json(value any) output {
	switch value := value.(type) {
	case map[string]any:
		o.text("{")
		for i, key := range slices.Sorted(maps.Keys(value)) {
			if i > 0 {
				o.text(",")
			}
			o.quoted(key).text(":").json(value[key])
		}
		return o.text("}")
	case []any:
		o.text("[")
		for i, element := range value {
			if i > 0 {
				o.text(",")
			}
			o.json(element)
		}
		return o.text("]")
	case json.RawMessage:
		_, _ = o.Write(value)
		return o
	case string:
		return o.quoted(value)
	default:
		raw, _ := codec.Encode(value)
		return o.text(string(raw))
	}
}

// quoted writes a string in pieces, which end with a character.
func (o output) quoted(text string) output {
	o.text(`"`)
	for len(text) > 0 {
		end := min(len(text), maxPiece)
		for end < len(text) && end > maxPiece-utf8.UTFMax && !utf8.RuneStart(text[end]) {
			end--
		}

		raw, _ := codec.Encode(text[:end])
		_, _ = o.Write(raw[1 : len(raw)-1])
		text = text[end:]
	}

	return o.text(`"`)
}
