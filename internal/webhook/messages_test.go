package webhook

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/fixture"
	"github.com/example/nginx-operator/pkg/bounds"
	"github.com/example/nginx-operator/pkg/review"
	"github.com/example/nginx-operator/pkg/serving"
	"github.com/example/nginx-operator/test/golden"
)

// messagesOf returns the error and the warnings of a response, as kubectl prints them.
func messagesOf(response admission.Response) []string {
	var messages []string
	if !response.Allowed {
		messages = append(messages, response.Result.Message)
	}
	for _, warning := range response.Warnings {
		messages = append(messages, "Warning: "+warning)
	}
	return messages
}

// TestMessages verifies the messages of admission, without those of other packages about a spec.
func TestMessages(t *testing.T) {
	const (
		kept    = `"metadata":{"name":"web","annotations":{"operator.example.com/v1alpha2":"{\"paused\":true}"}},"spec":{}`
		changed = `"metadata":{"name":"web","annotations":{"operator.example.com/v1alpha2":"{\"paused\":false}"}},"spec":{}`
		damaged = `"metadata":{"name":"web","annotations":{"operator.example.com/v1alpha2":"{\"pa"}},"spec":{}`
		invalid = `"metadata":{"name":"web","annotations":{"operator.example.com/v1alpha2":"{\"service\":{\"type\":\"Other\"}}"}},"spec":{}`
		atV1    = `"metadata":{"name":"web","managedFields":[` + appliedPort +
			`v1alpha1","fieldsV1":{"f:spec":{"f:port":{}}}}]},"spec":{"port":80}`
		atV2 = `"metadata":{"name":"web","managedFields":[` + appliedPort +
			`v1alpha2","fieldsV1":{"f:spec":{"f:ports":{` + webPort + `}}}}]},"spec":{"port":80}`
		oldAtSame = `"metadata":{"name":"web"},"spec":[]`
	)
	handlers := newHandlers(t)
	cases := map[string]fixture.Case{}
	for name, test := range map[string]struct{ path, version, object, old string }{
		"an object of a wrong type": {PathValidate, "v1alpha2", `"spec":{"tls":1}`, ""},
		"a field twice":             {PathValidate, "v1alpha2", `"spec":{"paused":true,"paused":false}`, ""},
		"an expensive quantity": {
			PathValidate, "v1alpha2", `"metadata":{"name":"web"},"spec":{"resources":{"limits":{"cpu":"1e-1000000000"}}}`, "",
		},
		"many values": {PathValidate, "v1alpha2", `"spec":{"tls":[` + strings.Repeat("{},", bounds.MaxValues) + `{}]}`, ""},
		"deep": {
			PathValidate, "v1alpha2", `"spec":` + strings.Repeat("[", bounds.MaxDepth) + strings.Repeat("]", bounds.MaxDepth), "",
		},
		"large":               {PathValidate, "v1alpha2", `"spec":"` + strings.Repeat("x", bounds.MaxBytes) + `"`, ""},
		"a list at an update": {PathDefault, "v1alpha2", oldAtSame, oldAtSame},
		"no JSON at v1alpha1": {PathValidate, "v1alpha1", `"spec":{}}`, ""},
		"an invalid spec at v1alpha1": {
			PathValidate, "v1alpha1",
			`"metadata":{"name":"web","annotations":{"operator.example.com/v1alpha2":"{\"image\":\":\"}"}},"spec":{}`, "",
		},
		"no JSON for the annotation":     {PathV1alpha1, "v1alpha1", `"spec":{}}`, ""},
		"a stored object that is none":   {PathV1alpha1, "v1alpha1", kept, `"spec":{}}`},
		"an annotation that is changed":  {PathV1alpha1, "v1alpha1", changed, kept},
		"an annotation that is damaged":  {PathV1alpha1, "v1alpha1", damaged, ""},
		"an annotation that is refused":  {PathV1alpha1, "v1alpha1", invalid, ""},
		"an apply that would lose ports": {PathV1alpha1, "v1alpha1", atV1, atV2},
	} {
		response := handlers[test.path].Handle(t.Context(), requestFor(test.version, test.object, test.old))
		cases[name] = fixture.Case{Input: strings.TrimSpace(test.version + ": " + test.object + "\n" + test.old), Messages: messagesOf(response)}
	}

	elsewhere := Validator{Watches: func(string) bool { return false }}
	warnings, err := elsewhere.ValidateCreate(at(t, "v1alpha2"), object(v1alpha2.NginxOperatorSpec{}))
	if err != nil {
		t.Fatal(err)
	}
	cases["a namespace that is not watched"] = fixture.Case{
		Input: "# in namespace shop", Messages: messagesOf(admission.Allowed("").WithWarnings(warnings...)),
	}
	for name, warnings := range uncheckedWarnings(t) {
		cases[name] = fixture.Case{Input: "# a dry run", Messages: messagesOf(admission.Allowed("").WithWarnings(warnings...))}
	}
	fixture.GoldenCases(t, "messages.txt", cases)

	golden.Messages(t, map[string]string{
		"failed to encode the spec: …": "every spec can be encoded",
		"A dry run failed":             "a message of the log",
		"Failed to remove the fields that a server-side apply dropped": "a message of the log",
	}, "testdata/messages.txt")
}

// appliedPort is the start of an entry in managedFields, and webPort the fields of a port.
const (
	appliedPort = `{"manager":"argocd","operation":"Apply","fieldsType":"FieldsV1","apiVersion":"operator.example.com/`
	webPort     = `"k:{\"name\":\"web\"}":{".":{},"f:name":{},"f:port":{}}`
)

// uncheckedWarnings returns the warnings about a Pod template that the API server did not check.
func uncheckedWarnings(t *testing.T) map[string]admission.Warnings {
	t.Helper()
	unreachable := func() *dryRun {
		return answering(t, func(context.Context, client.Object, *client.CreateOptions) error {
			return errors.New("connection refused")
		})
	}
	byName := map[string]admission.Warnings{}
	_, byName["an API server that does not answer"] = unreachable().ask(t.Context(), judged())

	busy := unreachable()
	if err := busy.slots.Acquire(t.Context(), dryRuns); err != nil {
		t.Fatal(err)
	}
	_, byName["too many dry runs"] = busy.ask(t.Context(), judged())

	limited := unreachable()
	for range dryRunBurst + dryRunRate {
		limited.rates.Allow(serving.AddressOf(t.Context()))
	}
	_, byName["too many reviews"] = limited.ask(t.Context(), judged())
	return byName
}

// TestReviewMessages verifies the answers to invalid AdmissionReviews. The API server logs them.
func TestReviewMessages(t *testing.T) {
	const head = `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview",`
	many := strings.Repeat("0,", bounds.MaxValues)
	cases := map[string]fixture.Case{}
	for name, body := range map[string]string{
		"another kind": `{"apiVersion":"v1","kind":"Pod","request":{}}`, "no request": head + `"request":null}`,
		"a list": "[]", "no JSON": head + `"request":{"uid":}}`, "cut off": head + `"request":{"uid":"1"`,
		"invalid UTF-8":            head + `"request":{"uid":"` + "\xff" + `"}}`,
		"many values":              head + `"x":[` + many + `0]}`,
		"deep":                     head + `"x":` + strings.Repeat("[", bounds.MaxDepth) + strings.Repeat("]", bounds.MaxDepth) + "}",
		"an object of many values": head + `"request":{"object":{"spec":[` + many + `0]}}}`,
		"large":                    head + `"x":"` + strings.Repeat("x", bounds.MaxReviewBytes) + `"}`,
		"invalid Content-Type":     "",
	} {
		request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader(body))
		if body != "" {
			request.Header.Set("Content-Type", "application/json")
		}
		recorder := httptest.NewRecorder()
		review.BoundedHandler(nil).ServeHTTP(recorder, request)
		cases[name] = fixture.Case{Input: strings.ToValidUTF8(body, "\\xff"), Messages: []string{strings.TrimSpace(recorder.Body.String())}}
	}

	for name, raw := range map[string]string{"a long review": strings.Repeat("x", bounds.MaxReviewBytes+1)} {
		_, err := bounds.ReadReview([]byte(raw))
		cases[name] = fixture.Case{Input: raw, Messages: []string{err.Error()}}
	}
	err := bounds.Stored([]byte("\"\xff\""))
	cases["a stored object that is not UTF-8"] = fixture.Case{Input: `"\xff"`, Messages: []string{err.Error()}}
	fixture.GoldenCases(t, "reviews.txt", cases)
}
