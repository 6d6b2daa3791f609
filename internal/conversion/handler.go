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
	"github.com/example/nginx-operator/internal/bounds"
)

// handler answers conversion reviews. That of controller-runtime holds a review several times over, as text and as objects; a
// review has all objects of a list, so this one has only one of them in memory besides the text.
type handler struct {
	// failed is called for each review that is answered with a failure.
	failed func()
}

// question is what a ConversionReview says before its objects.
type question struct{ apiVersion, kind, uid, version string }

// ServeHTTP converts the objects of a review one after the other, and answers with each at once. The result comes last, so that
// it can speak of all.
func (h handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// Not needed where the body has been read already, nor with HTTP/2.
	_ = http.NewResponseController(w).EnableFullDuplex()
	body := &metered{from: r.Body}
	decoder := json.NewDecoder(body)
	asked, err := readQuestion(decoder)
	if err != nil {
		http.Error(w, "failed to read the review: "+err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	out := &output{to: w}
	out.text(`{"apiVersion":`).json(asked.apiVersion).text(`,"kind":`).json(asked.kind)
	out.text(`,"response":{"uid":`).json(asked.uid).text(`,"convertedObjects":[`)
	result := metav1.Status{Status: metav1.StatusSuccess}
	if err := convertAll(decoder, body, asked.version, out); err != nil {
		log.FromContext(r.Context()).Error(err, "Failed to convert", "request", asked.uid)
		result = metav1.Status{Status: metav1.StatusFailure, Message: err.Error()}
		h.failed()
	}
	out.text(`],"result":`).json(result).text("}}")
	if out.err != nil {
		log.FromContext(r.Context()).Error(out.err, "Failed to answer a conversion review")
	}
}

// readQuestion reads a review up to its first object.
func readQuestion(decoder *json.Decoder) (question, error) {
	asked := question{apiVersion: apiextensionsv1.SchemeGroupVersion.String(), kind: "ConversionReview"}
	found, err := walk(decoder, map[string]*string{"apiVersion": &asked.apiVersion, "kind": &asked.kind}, "request")
	if err == nil && found {
		found, err = walk(decoder, map[string]*string{"uid": &asked.uid, "desiredAPIVersion": &asked.version}, "objects")
	}
	if err == nil && (!found || asked.version == "") {
		err = errors.New("it has no objects, or does not say before them into which version they are to be converted")
	}
	return asked, err
}

// walk reads texts of the object that comes next, until it is at the value of the last field.
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

// skipped is a value that nobody reads.
type skipped struct{}

// UnmarshalJSON takes any value.
func (*skipped) UnmarshalJSON([]byte) error { return nil }

// convertAll answers with the objects that come next.
func convertAll(decoder *json.Decoder, body *metered, version string, out *output) error {
	if token, err := decoder.Token(); err != nil || token == nil { // null
		return err
	} else if token != json.Delim('[') {
		return errors.New("failed to read the objects: they are no list")
	}
	var raw json.RawMessage
	for separator := ""; decoder.More(); separator = "," {
		body.read = 0
		raw = raw[:0]
		if err := decoder.Decode(&raw); err != nil {
			return fmt.Errorf("failed to read an object: %w", err)
		}
		converted, err := convertRaw(raw, version)
		if err != nil {
			return err
		}
		out.text(separator).json(converted.Object)
	}
	_, err := decoder.Token()
	return err
}

// metered is the text of a review, of which no value may be much longer than an object may be: the decoder has a value in its memory
// as a whole, twice, before anybody can tell how long it is.
type metered struct {
	from io.Reader
	// read is how much was read since the last value.
	read int
}

// Read fails where too much is read for one value.
func (m *metered) Read(p []byte) (int, error) {
	if m.read > bounds.MaxBytes {
		return 0, fmt.Errorf("it has more than %d bytes, the most that are read", bounds.MaxBytes)
	}
	n, err := m.from.Read(p[:min(len(p), 64<<10)])
	m.read += n
	return n, err
}

// output writes parts of a JSON text until one fails.
type output struct {
	to  io.Writer
	err error
}

func (a *output) text(part string) *output {
	if a.err == nil {
		_, a.err = io.WriteString(a.to, part)
	}
	return a
}

func (a *output) json(part any) *output {
	if a.err == nil {
		a.err = json.NewEncoder(a.to).Encode(part)
	}
	return a
}

// convertRaw converts one object.
func convertRaw(raw []byte, version string) (*unstructured.Unstructured, error) {
	if err := bounds.Stored(raw); err != nil {
		return nil, fmt.Errorf("failed to read an object: %w", err)
	}
	from := &unstructured.Unstructured{}
	if err := from.UnmarshalJSON(raw); err != nil {
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
