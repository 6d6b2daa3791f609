package conversion

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/fixture"
	"github.com/example/nginx-operator/pkg/bounds"
	"github.com/example/nginx-operator/test/golden"
)

// TestMessages verifies the answers to reviews that fail, which the API server returns to its
// client, and the errors of an annotation and of managed fields.
func TestMessages(t *testing.T) {
	const (
		to     = `"desiredAPIVersion":"operator.example.com/v1alpha2",`
		object = `"apiVersion":"operator.example.com/v1alpha1","kind":`
	)
	cases := map[string]fixture.Case{}
	for name, body := range map[string]string{
		"no JSON":             "hello",
		"no objects":          `{"request":{"uid":"1",` + to + `"x":1}}`,
		"no version":          `{"request":{"uid":"1","objects":[]}}`,
		"objects in a map":    `{"request":{` + to + `"objects":{}}}`,
		"an object of others": `{"request":{` + to + `"objects":[{` + object + `"Pod"}]}}`,
		"the same version":    `{"request":{"desiredAPIVersion":"operator.example.com/v1alpha1","objects":[{` + object + `"NginxOperator"}]}}`,
		"an object of text":   `{"request":{` + to + `"objects":["a"]}}`,
		"an object cut off":   `{"request":{` + to + `"objects":[{"a":`,
		"a list cut off":      `{"request":{` + to + `"objects":[{` + object + `"NginxOperator"}`,
		"a large object":      `{"request":{` + to + `"objects":[{"a":"` + strings.Repeat("x", bounds.MaxBytes) + `"}]}}`,
		"invalid UTF-8":       `{"request":{` + to + `"objects":[{"a":"` + "\xff" + `"}]}}`,
	} {
		recorder := httptest.NewRecorder()
		newHandler(t).ServeHTTP(recorder, httptest.NewRequestWithContext(t.Context(), http.MethodPost, Path, strings.NewReader(body)))
		message := strings.TrimSpace(recorder.Body.String())
		var answered apiextensionsv1.ConversionReview
		if recorder.Code == http.StatusOK {
			if err := json.Unmarshal(recorder.Body.Bytes(), &answered); err != nil {
				t.Fatal(err)
			}
			message = answered.Response.Result.Message
		}
		cases[name] = fixture.Case{Input: strings.ToValidUTF8(body, `\xff`), Messages: []string{message}}
	}

	for name, text := range map[string]string{
		"an annotation that is cut off":      `{"image":"a`,
		"an annotation with a field twice":   `{"image":"b","image":"a"}`,
		"an annotation with a wrong type":    `{"ports":"80"}`,
		"an annotation with a long quantity": `{"resources":{"limits":{"cpu":"1e-1000000000"}}}`,
	} {
		cases[name] = fixture.Case{Input: text, Messages: []string{Check(text).Error()}}
	}

	unreadable := &v1alpha2.NginxOperator{ObjectMeta: metav1.ObjectMeta{ManagedFields: []metav1.ManagedFieldsEntry{
		owns("argocd", metav1.ManagedFieldsOperationApply, v1alpha2.GroupVersion.Version, "{"),
	}}}
	err := RemoveDropped(&v1alpha2.NginxOperator{}, unreadable)
	cases["managed fields that cannot be read"] = fixture.Case{Input: `manager: argocd, fieldsV1: "{"`, Messages: []string{err.Error()}}
	fixture.GoldenCases(t, "messages.txt", cases)

	const ofLog, never = "a message of the log", "every spec can be converted"
	golden.Messages(t, map[string]string{
		"Failed to convert an object": ofLog, "Failed to answer a conversion review": ofLog,
		"failed to convert the spec to fields: …": never, "failed to convert the fields to a spec: …": never,
	}, "testdata/messages.txt")
}
