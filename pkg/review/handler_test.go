package review

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/example/nginx-operator/pkg/bounds"
	"github.com/example/nginx-operator/pkg/bounds/boundstest"
)

// post posts a JSON body, and returns the answer.
func post(ctx context.Context, handler http.Handler, body string) *httptest.ResponseRecorder {
	request := httptest.NewRequestWithContext(ctx, http.MethodPost, "/validate", strings.NewReader(body))
	request.Header.Set("Content-Type", "application/json")
	recorder := httptest.NewRecorder()
	handler.ServeHTTP(recorder, request)
	return recorder
}

// reviewOf returns an AdmissionReview with a request, as JSON.
func reviewOf(t *testing.T, request *admissionv1.AdmissionRequest) string {
	t.Helper()
	raw, err := json.Marshal(admissionv1.AdmissionReview{TypeMeta: typeMeta, Request: request})
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func TestHandlerHandsOnTheRequest(t *testing.T) {
	want := &admissionv1.AdmissionRequest{
		UID: "1", Kind: metav1.GroupVersionKind{Group: "g", Version: "v", Kind: "K"}, Name: "web", Namespace: "shop",
		Operation: admissionv1.Update, DryRun: new(bool),
		Object: runtime.RawExtension{Raw: []byte(`{"a":1}`)}, OldObject: runtime.RawExtension{Raw: []byte(`{"b":[{}]}`)},
		Options: runtime.RawExtension{Raw: []byte(`{"fieldManager":"f"}`)},
	}
	want.UserInfo.Username, want.UserInfo.Groups = "somebody", []string{"a", "b"}
	var got admission.Request
	handler := BoundedHandler(admission.HandlerFunc(func(_ context.Context, r admission.Request) admission.Response {
		got = r
		return admission.Denied("no").WithWarnings("warned")
	}))
	answered := post(t.Context(), handler, reviewOf(t, want))
	if diff := cmp.Diff(*want, got.AdmissionRequest); diff != "" {
		t.Error(diff)
	}
	var answer admissionv1.AdmissionReview
	if err := json.Unmarshal(answered.Body.Bytes(), &answer); err != nil || answer.TypeMeta != typeMeta || answer.Response.UID != "1" ||
		answer.Response.Allowed || answer.Response.Result.Message != "no" || len(answer.Response.Warnings) != 1 {
		t.Errorf("%v: %s", err, answered.Body)
	}
}

// TestHandlerBoundsStrangers verifies that invalid input, which any Pod can post, costs little. The
// answer is an HTTP error, so that the API server applies the failurePolicy.
func TestHandlerBoundsStrangers(t *testing.T) {
	fill := func(before, element, after string) string {
		return before + strings.Repeat(element+",", (bounds.MaxReviewBytes-len(before)-len(after))/(len(element)+1)-1) + element + after
	}
	head := `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview",`
	for name, body := range map[string]string{
		"causes of a response":      fill(head+`"response":{"status":{"details":{"causes":[`, "{}", `]}}}}`),
		"managed fields in there":   fill(head+`"response":{"status":{"metadata":{"managedFields":[`, "{}", `]}}}}`),
		"groups of the user":        fill(head+`"request":{"userInfo":{"groups":[`, `""`, `]}}}`),
		"an object of many values":  fill(head+`"request":{"object":{"spec":{"containers":[`, "{}", `]}}}}`),
		"an old one":                fill(head+`"request":{"oldObject":{"spec":{"containers":[`, "{}", `]}}}}`),
		"a long object":             head + `"request":{"object":{"a":"` + strings.Repeat("x", bounds.MaxBytes) + `"}}}`,
		"deep":                      head + `"request":{"object":` + strings.Repeat("[", 3<<20) + strings.Repeat("]", 3<<20) + "}}",
		"another kind":              `{"apiVersion":"v1","kind":"Pod","request":{}}`,
		"no request":                head + `"request":null}`,
		"a request of a wrong type": head + `"request":[]}`,
		"no JSON":                   head + `"request":{"uid":}}`,
		"YAML": "apiVersion: admission.k8s.io/v1\nkind: AdmissionReview\na: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\n" +
			"c: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: [*c,*c,*c,*c,*c,*c,*c,*c,*c]\n",
		"too long": strings.Repeat(" ", bounds.MaxReviewBytes) + "{}",
		"nothing":  "",
	} {
		t.Run(name, func(t *testing.T) {
			handler := BoundedHandler(admission.HandlerFunc(func(context.Context, admission.Request) admission.Response {
				t.Error("the webhook is asked")
				return admission.Allowed("")
			}))
			boundstest.CheapRequest(t, func() {
				if got := post(t.Context(), handler, body); got.Code != http.StatusBadRequest || got.Body.Len() > 1<<10 {
					t.Errorf("answered %d: %.2000s", got.Code, got.Body)
				}
			})
		})
	}
	request := httptest.NewRequest(http.MethodPost, "/validate", strings.NewReader("{}"))
	recorder := httptest.NewRecorder()
	BoundedHandler(nil).ServeHTTP(recorder, request)
	if recorder.Code != http.StatusUnsupportedMediaType {
		t.Errorf("answered %d without a Content-Type", recorder.Code)
	}
}

// TestHandlerTakesTheLargestObjects verifies that a review with two objects of 3 MiB, which have
// the fields of many managers, is accepted.
func TestHandlerTakesTheLargestObjects(t *testing.T) {
	fields := `{"manager":"m","operation":"Apply","fieldsV1":{` + strings.Repeat(`"f:a":{},`, 100) + `"f:b":{}}},`
	managed := `[` + strings.Repeat(fields, 70) + `{}]`
	text := strings.Repeat("x", bounds.MaxBytes-len(managed)-1<<10)
	object := fmt.Sprintf(`{"metadata":{"managedFields":%s,"annotations":{"a":%q}}}`, managed, text)
	asked := false
	handler := BoundedHandler(admission.HandlerFunc(func(_ context.Context, r admission.Request) admission.Response {
		asked = len(r.Object.Raw) == len(object) && len(r.OldObject.Raw) == len(object)
		return admission.Allowed("")
	}))
	body := reviewOf(t, &admissionv1.AdmissionRequest{
		Object: runtime.RawExtension{Raw: []byte(object)}, OldObject: runtime.RawExtension{Raw: []byte(object)},
	})
	boundstest.CheapRequest(t, func() {
		if got := post(t.Context(), handler, body); got.Code != http.StatusOK || !asked {
			t.Errorf("answered %d: %s", got.Code, got.Body)
		}
	})
}

// TestHandlerLogsLittleOfStrangers verifies that log lines are few and short. Any Pod can post a
// review, and choose its user name and UID.
func TestHandlerLogsLittleOfStrangers(t *testing.T) {
	var lines []string
	logger := funcr.New(func(prefix, args string) { lines = append(lines, prefix+args) }, funcr.Options{})
	forged := strings.Repeat("forged\n", 10_000)
	synctest.Test(t, func(t *testing.T) { // time does not advance
		handler := Handler(admission.HandlerFunc(func(ctx context.Context, r admission.Request) admission.Response {
			log.FromContext(ctx).Info("Changed", "user", r.UserInfo.Username)
			return admission.Allowed("")
		}))
		request := &admissionv1.AdmissionRequest{UID: "1\n2", Name: forged, Namespace: forged}
		request.UserInfo.Username = forged
		for range 100 {
			if code := post(log.IntoContext(t.Context(), logger), handler, reviewOf(t, request)).Code; code != http.StatusOK {
				t.Fatalf("answered %d", code)
			}
		}
	})
	if len(lines) != 20 {
		t.Errorf("%d lines", len(lines))
	}
	for _, line := range lines {
		if strings.Contains(line, "\n") || len(line) > 8<<10 {
			t.Errorf("%d bytes: %.2000q", len(line), line)
		}
	}
}
